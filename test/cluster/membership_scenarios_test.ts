/** Joining, restarting and cuts, as other systems' tests and bug reports describe them, over real nodes in virtual time. */
import { assert, assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import {
  DownAll,
  type DowningStrategy,
  downingStrategy,
  KeepMajority,
  KeepOldest,
  KeepReferee,
  ManualDowning,
  StaticQuorum,
} from '../../src/cluster/downing/mod.ts';
import { ringOf, watchedBy } from '../../src/cluster/ring.ts';
import { allUp, Harness, statuses, type TestNode } from './support/node_harness.ts';

const consists = (one: TestNode, of: readonly TestNode[]): boolean =>
  allUp(one) && statuses(one).length === of.length &&
  of.every((other) => one.node.view().members.some(({ uid, reachable }) => uid === other.node.uid && reachable));
const whole = (nodes: readonly TestNode[]) => (): boolean => nodes.every((one) => consists(one, nodes));
const manual = { strategy: new ManualDowning() };

describe('joining', () => {
  test('P43: seeds listed in reverse order, started one after the other: the oldest is the same on every node', async () => {
    const harness = new Harness();
    const seeds = ['10.0.0.3:4000', '10.0.0.2:4000', '10.0.0.1:4000'];
    const nodes: TestNode[] = [];
    for (const address of seeds) {
      nodes.push(await harness.add(address, seeds));
      await harness.environment.elapse(3_000);
    }
    await harness.until(whole(nodes), 15_000);
    // The first in the agreed order of those that founded: the third came when there was a cluster.
    assertEquals(nodes.map((one) => one.node.view().leader?.address), [seeds[1], seeds[1], seeds[1]]);
    for (const { node } of nodes) assertEquals(node.view().members[2]?.address, seeds[2]);
  });

  test('P47: of four seeds one is never there; the first restarts and joins the others', async () => {
    const harness = new Harness();
    const seeds = [1, 2, 3, 4].map((n) => `10.0.0.${n}:4000`);
    const nodes: TestNode[] = [];
    for (const address of seeds.slice(0, 3)) nodes.push(await harness.add(address, seeds));
    await harness.until(whole(nodes), 10_000);
    const clusterId = nodes[1]?.node.view().clusterId;
    nodes[0]?.crash();
    nodes[0] = await harness.add(seeds[0]!, seeds);
    await harness.until(whole(nodes), 20_000);
    assertEquals(nodes[0]?.node.view().clusterId, clusterId);
  });

  test('P49: who joins on either side of a split is visible as joining, and up once it has healed', async () => {
    const harness = new Harness();
    const old = await harness.cluster(3, '10.0.0.', manual);
    const [a, b, c] = old as [TestNode, TestNode, TestNode];
    harness.cutAll([a], [b, c]);
    await harness.environment.elapse(3_000);
    harness.network.cut('10.0.0.4:4000', b.address);
    harness.network.cut('10.0.0.4:4000', c.address);
    harness.network.cut('10.0.0.5:4000', a.address);
    harness.network.cut('10.0.0.5:4000', '10.0.0.4:4000');
    const d = await harness.add('10.0.0.4:4000', [a.address], manual);
    const e = await harness.add('10.0.0.5:4000', [b.address], manual);
    const joining = (one: TestNode, who: TestNode) => statuses(one).includes(`${who.address} joining`);
    await harness.until(() => joining(a, d) && joining(d, d) && joining(b, e) && joining(c, e), 20_000);
    await harness.environment.elapse(20_000);
    assertEquals([d, e].map((one) => one.node.view().self.status), ['joining', 'joining']);
    for (const left of [a, d]) for (const right of [b, c, e]) harness.network.heal(left.address, right.address);
    await harness.until(whole([a, b, c, d, e]), 10_000);
  });

  test('FB-057: of eight one is silent while four join: all twelve are up soon after it is back', async () => {
    const harness = new Harness();
    const old = await harness.cluster(8, '10.0.0.', manual);
    const [silent, ...others] = old as [TestNode, ...TestNode[]];
    harness.cutAll([silent], others);
    const late: TestNode[] = [];
    for (const n of [11, 12, 13, 14]) {
      const address = `10.0.0.${n}:4000`;
      harness.network.cut(silent.address, address);
      late.push(await harness.add(address, [others[0]!.address], manual));
    }
    await harness.environment.elapse(20_000);
    harness.healAll([silent], [...others, ...late]);
    await harness.until(whole([...old, ...late]), 10_000);
  });
});

describe('restarting', () => {
  test('P44, FB-054: a node that is restarted at its port again and again is up each time, nothing of it is left', async () => {
    const harness = new Harness();
    const stable = await harness.cluster(3, '10.0.0.');
    let last: TestNode | undefined;
    for (const [round, pauseMs] of [200, 3_000, 900, 15_000, 2_000, 600, 1_500].entries()) {
      last?.crash();
      await harness.environment.elapse(pauseMs);
      const roles = [`round-${round}`];
      const again = last = await harness.add('10.0.0.9:4000', [stable[0]!.address], { roles });
      const up = (one: TestNode) => one.node.view().members.some((m) => m.roles[0] === roles[0] && m.status === 'up');
      await harness.until(() => [...stable, again].every(up), 20_000);
    }
    await harness.until(whole([...stable, last!]), 20_000);
  });

  test('P48: downed while cut off, it comes back at its port once the network is back', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(4, '10.0.0.');
    const [victim, ...others] = nodes as [TestNode, ...TestNode[]];
    harness.cutAll([victim], others);
    await harness.until(() => victim.node.ended()?.rejoin === true && whole(others)(), 12_000);
    victim.stop();
    harness.healAll([victim], others);
    const again = await harness.add(victim.address, [others[0]!.address]);
    await harness.until(whole([again, ...others]), 30_000);
    assertEquals(others[0]!.node.view().members.at(-1)?.uid, again.node.uid);
  });

  test('P51: one node forms by itself, is alone again after the others, and leaves at once', async () => {
    const harness = new Harness();
    const one = await harness.add('10.0.0.1:4000', ['10.0.0.1:4000']);
    await harness.until(whole([one]), 5_000);
    const other = await harness.add('10.0.0.2:4000', [one.address]);
    await harness.until(whole([one, other]), 5_000);
    other.crash();
    await harness.until(whole([one]), 30_000);
    void one.node.leave();
    await harness.until(() => one.node.ended()?.why === 'left', 5_000);
  });

  test('FB-056: scaled to zero and back three times at the same addresses', async () => {
    const harness = new Harness();
    const seeds = [1, 2, 3].map((n) => `10.0.0.${n}:4000`);
    for (let round = 0; round < 4; round++) {
      const nodes: TestNode[] = [];
      for (const address of seeds) nodes.push(await harness.add(address, seeds));
      await harness.until(whole(nodes), 10_000);
      assert(nodes.every((one) => one.node.membership().gossip.tombstones.size === 0), 'nobody is on a list');
      for (const one of nodes) void one.node.leave();
      await harness.until(() => nodes.every((one) => one.node.ended()?.why === 'left'), 6_000);
      for (const one of nodes) one.stop();
      await harness.environment.elapse(100);
    }
  });
});

describe('cuts', () => {
  const nobody = downingStrategy({ decide: () => new Set<string>() }, { error: () => {} });
  const everyone: readonly [what: string, strategy: DowningStrategy, survivors: readonly number[]][] = [
    ['keep-majority', new KeepMajority(), [1, 2]],
    ['keep-oldest', new KeepOldest(), [1, 2]],
    ['keep-oldest, also alone', new KeepOldest({ downIfAlone: false }), [0]],
    ['keep-referee', new KeepReferee({ refereeAddress: '10.0.0.3:4000' }), [1, 2]],
    ['static-quorum', new StaticQuorum({ quorumSize: 2 }), [1, 2]],
    ['down-all', new DownAll(), []],
    ['manual', new ManualDowning(), [0, 1, 2]],
    ['a provider that downs nobody', nobody, [0, 1, 2]],
  ];
  for (const [what, strategy, survivors] of everyone) {
    test(`R94, FB-074: a cut of ten times the detection is decided by the strategy alone: ${what}`, async () => {
      const harness = new Harness();
      const nodes = await harness.cluster(3, '10.0.0.', { strategy });
      const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
      const downed = nodes.map(() => new Set<string>());
      for (const [at, one] of nodes.entries()) {
        one.node.onChange((view) => {
          for (const { address, status } of view.members) if (status === 'down') downed[at]!.add(address);
        });
      }
      harness.cutAll([a], [b, c]);
      await harness.environment.elapse(10 * a.node.settings.timing.detectionMs);
      assertEquals(nodes.flatMap((one, at) => one.node.ended() === undefined ? [at] : []), survivors);
      for (const [at, one] of nodes.entries()) {
        // Who goes takes out nobody but its own side.
        const others = at === 0 ? [b, c] : [a];
        if (!survivors.includes(at)) {
          for (const other of others) assert(!downed[at]!.has(other.address), one.address);
        }
        if (survivors.length === 3) assertEquals([downed[at]!.size, statuses(one).length], [0, 3]);
        else if (survivors.includes(at)) assert(consists(one, survivors.map((index) => nodes[index]!)));
      }
    });
  }

  test('R97: a member is reachable again when all observers that lost it see it again', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(14, '10.0.0.', manual);
    const gossip = nodes[0]!.node.membership().gossip;
    const subject = nodes[5]!;
    const watches = (one: TestNode) => watchedBy(ringOf(gossip), gossip, one.node.uid).includes(subject.node.uid);
    const [first, second] = nodes.filter((one) => one !== subject && watches(one)) as [TestNode, TestNode];
    const outside = nodes.find((one) => one !== subject && !watches(one))!;
    const seen = () => outside.node.view().members.find(({ uid }) => uid === subject.node.uid)?.reachable;
    harness.network.cut(subject.address, first.address);
    harness.network.cut(subject.address, second.address);
    await harness.until(() => seen() === false, 10_000);
    await harness.environment.elapse(3_000);
    harness.network.heal(subject.address, first.address);
    await harness.environment.elapse(10_000);
    assertEquals(seen(), false);
    harness.network.heal(subject.address, second.address);
    await harness.until(() => seen() === true && whole(nodes)(), 10_000);
  });

  test('P53: who was taken out while cut off ends when it hears of it; a plain shutdown elsewhere ends nobody', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    const c = await harness.add('10.0.0.3:4000', [a.address], manual);
    const d = await harness.add('10.0.0.4:4000', [a.address]);
    await harness.until(whole([a, b, c, d]), 10_000);
    harness.cutAll([a, b, d], [c]);
    await harness.until(whole([a, b, d]), 12_000);
    assertEquals(c.node.ended(), undefined);
    harness.healAll([a, b, d], [c]);
    await harness.until(() => c.node.ended()?.rejoin === true, 10_000);
    void d.node.leave();
    for (let step = 0; step < 25; step++) {
      await harness.environment.elapse(200);
      assertEquals([a, b].map((one) => one.node.ended()), [undefined, undefined]);
    }
    assert(whole([a, b])());
  });

  test('S2: a member that was cut off and put out brings down nobody when it meets a newcomer first', async () => {
    const harness = new Harness();
    const seeds = [1, 2, 3, 4].map((n) => `10.0.0.${n}:4000`);
    // Nothing decides on its side: like one that was paused, it sees its cluster as it was.
    const stale = await harness.add(seeds[0]!, [], manual);
    const others: TestNode[] = [];
    for (const address of seeds.slice(1)) others.push(await harness.add(address, seeds.slice(0, 1)));
    await harness.until(whole([stale, ...others]), 10_000);
    harness.cutAll([stale], others);
    await harness.until(() => others.every((one) => statuses(one).length === 3 && allUp(one)), 20_000);
    harness.network.cut('10.0.0.5:4000', stale.address);
    const newcomer = await harness.add('10.0.0.5:4000', seeds);
    const living = [...others, newcomer];
    await harness.until(whole(living), 20_000);
    harness.healAll([stale], [newcomer]);
    await harness.environment.elapse(20_000);
    assertEquals(living.map((one) => one.node.ended()?.why), living.map(() => undefined));
    harness.healAll([stale], others);
    await harness.until(() => stale.node.ended() !== undefined, 20_000);
    assert(whole(living)());
  });

  test('two that have each put the other out do not answer each other as fast as the network can', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.', manual) as [TestNode, TestNode];
    harness.network.cut(a.address, b.address);
    await harness.environment.elapse(3_000);
    a.node.down(b.address);
    b.node.down(a.address);
    const before = harness.deliveries;
    harness.healAll([a], [b]);
    await harness.environment.elapse(1_000);
    const said = harness.deliveries - before;
    assert(said < 200, `${said} in a second`);
    await harness.until(() => [a, b].some((one) => one.node.ended() !== undefined), 30_000);
  });

  test('rule 3: a node whose machine slept leads again only once everybody has seen it awake', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    const version = (): number => a.node.membership().gossip.records.get(a.node.uid)?.selfVersion ?? 0;
    const [before, { clock }] = [version(), harness.environment];
    let slept = 0;
    const { wall } = clock;
    clock.wall = () => wall() + slept;
    await harness.environment.elapse(3_000);
    assertEquals(version(), before);
    slept = 10_000;
    await harness.environment.elapse(3_000);
    assertEquals(version(), before + 1);
    assert(whole([a, b])());
  });

  test('FB-063: two clusters of one name that a cut at the start has made: one gives way after the heal', async () => {
    const harness = new Harness();
    const seeds = ['10.0.0.1:4000', '10.0.0.2:4000'];
    harness.network.cut(seeds[0]!, seeds[1]!);
    const a = await harness.add(seeds[0]!, seeds, { selfElection: 5_000 });
    const b = await harness.add(seeds[1]!, seeds, { selfElection: 6_000 });
    await harness.until(() => whole([a])() && whole([b])(), 12_000);
    await harness.environment.elapse(20_000);
    harness.network.heal(seeds[0]!, seeds[1]!);
    await harness.until(() => b.node.ended()?.rejoin === true, 12_000);
    b.stop();
    const again = await harness.add(seeds[1]!, b.node.ended()?.via ?? []);
    await harness.until(whole([a, again]), 10_000);
  });
});
