import { describe, test } from 'node:test';
import { assert, assertEquals, assertInstanceOf, assertStringIncludes } from '@std/assert';
import { JoinError } from '../../src/cluster/join_error.ts';
import { allUp, Harness, statuses, type TestNode } from './support/node_harness.ts';

const seeds = ['10.0.0.1:4000', '10.0.0.2:4000', '10.0.0.3:4000'] as const;

const whole = (nodes: readonly TestNode[]): boolean =>
  nodes.every((one) => allUp(one) && statuses(one).length === nodes.length) &&
  new Set(nodes.map((one) => one.node.view().clusterId)).size === 1;

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) => permutations(items.filter((_, k) => k !== i)).map((rest) => [item, ...rest]));
}

describe('R110: one seed list on every node', () => {
  for (const order of permutations(seeds)) {
    for (const gapMs of [0, 7, 150, 1_500]) {
      test(`started in the order ${order.map((address) => address[7]).join('')}, ${gapMs} ms apart`, async () => {
        const harness = new Harness();
        const nodes: TestNode[] = [];
        for (const [i, address] of order.entries()) {
          const list = i % 2 === 0 ? seeds : seeds.toReversed();
          nodes.push(await harness.add(address, list));
          await harness.environment.elapse(gapMs);
        }
        await harness.until(() => whole(nodes), 4_000);
      });
    }
  }

  test('three nodes that start together are up within a second', async () => {
    const harness = new Harness();
    const nodes: TestNode[] = [];
    for (const address of seeds) nodes.push(await harness.add(address, seeds));
    const took = await harness.until(() => whole(nodes), 1_000);
    assert(took < 900, `took ${took} ms`);
  });

  test('rule 5: two of three found a cluster, the third joins it later, whichever is missing', async () => {
    for (const missing of seeds) {
      const harness = new Harness();
      const nodes: TestNode[] = [];
      for (const address of seeds) if (address !== missing) nodes.push(await harness.add(address, seeds));
      await harness.until(() => whole(nodes), 4_000);
      nodes.push(await harness.add(missing, seeds));
      await harness.until(() => whole(nodes), 4_000);
    }
  });

  test('rule 5, FB-064: one of three never founds an island, and says what is missing', async () => {
    const harness = new Harness();
    const one = await harness.add(seeds[0], seeds);
    await harness.environment.elapse(60_000);
    assertEquals(one.node.view().clusterId, undefined);
    assertEquals(one.node.readiness(), '2 of 3 seeds must be there to found a cluster, 1 are');
    assertEquals(one.node.seedReasons().map(({ why }) => why), [
      'is this node',
      'refused (connection refused)',
      'refused (connection refused)',
    ]);
  });

  test('rule 5: a list of two needs both', async () => {
    const harness = new Harness();
    const pair = seeds.slice(0, 2);
    const nodes = [await harness.add(seeds[1], pair)];
    await harness.environment.elapse(10_000);
    assertEquals(nodes[0]?.node.view().clusterId, undefined);
    nodes.push(await harness.add(seeds[0], pair));
    await harness.until(() => whole(nodes), 4_000);
  });

  test('rule 5: silence is no answer: a cut list founds at most one cluster', async () => {
    const harness = new Harness();
    harness.network.cut(seeds[0], seeds[1]);
    harness.network.cut(seeds[0], seeds[2]);
    const nodes: TestNode[] = [];
    for (const address of seeds) nodes.push(await harness.add(address, seeds));
    await harness.until(() => whole(nodes.slice(1)), 12_000);
    assertEquals(nodes[0]?.node.view().clusterId, undefined);
    harness.network.heal(seeds[0], seeds[1]);
    harness.network.heal(seeds[0], seeds[2]);
    await harness.until(() => whole(nodes), 8_000);
  });

  test('FB-064: the first seed restarts and joins the others', async () => {
    const harness = new Harness();
    const nodes: TestNode[] = [];
    for (const address of seeds) nodes.push(await harness.add(address, seeds));
    await harness.until(() => whole(nodes), 4_000);
    nodes[0]?.crash();
    nodes[0] = await harness.add(seeds[0], seeds);
    await harness.until(() => whole(nodes), 12_000);
  });

  test('a candidate that dies right after its founding does not block the others for good', async () => {
    for (let ms = 0; ms < 60; ms += 3) {
      const harness = new Harness();
      const list = ['127.0.0.1:4000', '127.0.0.2:4000', '127.0.0.3:4000'];
      const nodes: TestNode[] = [];
      for (const address of list) nodes.push(await harness.add(address, list));
      await harness.environment.elapse(ms);
      nodes[0]?.crash();
      const rest = nodes.slice(1);
      const ready = (): boolean => whole(rest) || rest.some((one) => one.node.ended()?.rejoin === true);
      await harness.until(ready, 15_000);
    }
  });

  test('all seeds restart together: the members that are no seeds invite them, no second cluster is founded', async () => {
    const harness = new Harness();
    const list = seeds.slice(0, 2);
    const nodes: TestNode[] = [];
    for (const address of seeds) nodes.push(await harness.add(address, list));
    await harness.until(() => whole(nodes), 4_000);
    const clusterId = nodes[2]?.node.view().clusterId;
    for (const i of [0, 1]) void nodes[i]?.node.leave();
    await harness.until(() => nodes.slice(0, 2).every((one) => one.node.ended() !== undefined), 500);
    for (const i of [0, 1]) nodes[i]?.stop();
    await harness.environment.elapse(2_010);
    for (const i of [0, 1]) nodes[i] = await harness.add(seeds[i] ?? '', list);
    await harness.until(() => whole(nodes), 2_000);
    assertEquals(nodes[0]?.node.view().clusterId, clusterId);
  });

  test('seeds as URLs', async () => {
    const harness = new Harness();
    const list = seeds.map((address) => `http://${address}/`);
    const nodes: TestNode[] = [];
    for (const address of seeds) nodes.push(await harness.add(address, list));
    await harness.until(() => whole(nodes), 4_000);
  });
});

describe('the join', () => {
  test("R101: selfElection 'never' only joins, a number founds alone later", async () => {
    const harness = new Harness();
    const never = await harness.add('10.0.0.1:4000', ['10.0.0.2:4000'], { selfElection: 'never' });
    await harness.environment.elapse(10_000);
    assertEquals(never.node.view().clusterId, undefined);
    const late = await harness.add('10.0.0.2:4000', ['10.0.0.1:4000'], { selfElection: 3_000 });
    await harness.environment.elapse(2_900);
    assertEquals(late.node.view().clusterId, undefined);
    await harness.until(() => whole([never, late]), 4_000);
  });

  test('P50: minMembers holds everybody at joining until they are enough', async () => {
    const harness = new Harness();
    const a = await harness.add('10.0.0.1:4000', [], { minMembers: 3 });
    const b = await harness.add('10.0.0.2:4000', [a.address], { minMembers: 3 });
    await harness.environment.elapse(5_000);
    assertEquals(statuses(a), ['10.0.0.1:4000 joining', '10.0.0.2:4000 joining']);
    const c = await harness.add('10.0.0.3:4000', [a.address], { minMembers: 3 });
    await harness.until(() => whole([a, b, c]), 1_000);
  });

  test('R100: a time-out rejects once and lists each seed and why', async () => {
    const harness = new Harness();
    const other = await harness.add('10.0.0.9:4000', [], { fingerprint: 'f; heartbeatMs=9' });
    const late = await harness.add('10.0.0.1:4000', ['10.0.0.2:4000', other.address], { selfElection: 'never' });
    const failed = late.node.join({ timeoutMs: 3_000 }).then(() => undefined, (error) => error);
    await harness.environment.elapse(3_100);
    const error = await failed;
    assertInstanceOf(error, JoinError);
    assertStringIncludes(error.message, '10.0.0.2:4000: refused');
    assertStringIncludes(error.message, '10.0.0.9:4000: its settings differ: heartbeatMs: unset here, 9 there');
    const warnings = harness.environment.logsAt('warn').filter((text) => text.includes('settings differ'))
      .filter((text) => !text.startsWith('not in a cluster yet'));
    assertEquals(warnings.length, 1);
  });

  test('R100: a join can be aborted', async () => {
    const harness = new Harness();
    const one = await harness.add('10.0.0.1:4000', ['10.0.0.2:4000']);
    const controller = new AbortController();
    const failed = one.node.join({ signal: controller.signal }).then(() => 'joined', (error) => String(error));
    controller.abort();
    await harness.environment.elapse(10);
    assertStringIncludes(await failed, 'aborted');
    assertEquals(one.node.ended()?.why, 'aborted');
  });

  test('a join resolves once the node is up', async () => {
    const harness = new Harness();
    const a = await harness.add('10.0.0.1:4000', []);
    const b = await harness.add('10.0.0.2:4000', [a.address]);
    let status = '';
    void b.node.join().then(() => status = b.node.view().self.status);
    await harness.environment.elapse(1_000);
    assertEquals(status, 'up');
  });

  test('twenty nodes that join at once are all up within 3 s', async () => {
    const harness = new Harness();
    const nodes = [await harness.add('10.0.0.1:4000', [])];
    for (let i = 2; i <= 20; i++) nodes.push(await harness.add(`10.0.0.${i}:4000`, ['10.0.0.1:4000']));
    await harness.until(() => whole(nodes), 3_000);
  });
});

describe('a process that comes back after a lost split', () => {
  test('rule 5: founds no rival while the side that was kept is behind the cut, and joins it after the heal', async () => {
    const harness = new Harness();
    const nodes: TestNode[] = [];
    for (const address of seeds) nodes.push(await harness.add(address, seeds));
    for (const last of [4, 5]) nodes.push(await harness.add(`10.0.0.${last}:4000`, seeds));
    await harness.until(() => whole(nodes), 4_000);
    // The two youngest of the seeds are cut off: a minority of the members, a majority of the seed list.
    const losers = nodes.slice(1, 3);
    const winners = [nodes[0], ...nodes.slice(3)] as TestNode[];
    harness.cutAll(losers, winners);
    await harness.until(() => losers.every((one) => one.node.ended() !== undefined), 8_000);
    const back: TestNode[] = [];
    for (const one of losers) {
      const previous = one.node.ended();
      one.stop();
      await harness.environment.elapse(10);
      back.push(await harness.add(one.address, seeds, { previous }));
    }
    await harness.until(() => whole(winners), 8_000);
    await harness.environment.elapse(30_000);
    for (const one of back) {
      assertEquals(one.node.view().clusterId, undefined);
      assertStringIncludes(one.node.readiness() ?? '', 'may still be in it');
    }
    harness.healAll(losers, winners);
    await harness.until(() => whole([...winners, ...back]), 8_000);
  });

  test('S2: founds again when all were downed and come back, one of them never', async () => {
    const harness = new Harness();
    const nodes: TestNode[] = [];
    for (const address of seeds) nodes.push(await harness.add(address, seeds));
    await harness.until(() => whole(nodes), 4_000);
    for (const one of nodes) for (const other of nodes) one.node.down(other.address);
    await harness.until(() => nodes.every((one) => one.node.ended() !== undefined), 1_000);
    const back: TestNode[] = [];
    for (const one of nodes.slice(0, 2)) {
      const previous = one.node.ended();
      one.stop();
      await harness.environment.elapse(10);
      back.push(await harness.add(one.address, seeds, { previous }));
    }
    nodes[2]?.crash();
    await harness.until(() => whole(back), 12_000);
  });

  test('an empty seed list is no way around it', async () => {
    const harness = new Harness();
    const first = await harness.add(seeds[0], []);
    const nodes = [first];
    for (const address of seeds.slice(1)) nodes.push(await harness.add(address, [first.address]));
    await harness.until(() => whole(nodes), 4_000);
    const rest = nodes.slice(1);
    harness.cutAll([first], rest);
    await harness.until(() => first.node.ended() !== undefined, 8_000);
    const previous = first.node.ended();
    first.stop();
    await harness.environment.elapse(10);
    const back = await harness.add(first.address, [], { previous });
    await harness.environment.elapse(10_000);
    assertEquals(back.node.view().clusterId, undefined);
    harness.healAll([first], rest);
    await harness.until(() => whole([back, ...rest]), 8_000);
  });
});
