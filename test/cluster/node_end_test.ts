import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { KeepOldest, ManualDowning } from '../../src/cluster/downing/mod.ts';
import { allUp, Harness, statuses, type TestNode } from './support/node_harness.ts';

/** Counts self-downs and how often each node was told that it is removed. */
function watch(one: TestNode): { downs: string[]; removed: string[] } {
  const seen = { downs: [] as string[], removed: [] as string[] };
  one.node.onSelfDown(({ why }) => void seen.downs.push(why));
  one.node.onChange((_view, changes) => {
    for (const change of changes) if (change.kind === 'self-removed') seen.removed.push(change.why);
  });
  return seen;
}

const consists = (one: TestNode, of: readonly TestNode[]): boolean =>
  allUp(one) && statuses(one).length === of.length &&
  of.every((other) => one.node.view().members.some((member) => member.uid === other.node.uid));

describe('leaving', () => {
  test('R106: a leaver is removed at once, without the failure detector, and is told', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '10.0.0.');
    const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
    const seen = watch(b);
    let resolved = false;
    void b.node.leave().then(() => resolved = true);
    const took = await harness.until(
      () => b.node.ended() !== undefined && [a, c].every((one) => consists(one, [a, c])),
      500,
    );
    assert(took < 50, `took ${took} ms`);
    await harness.environment.settle();
    assert(resolved);
    assertEquals(b.node.ended()?.why, 'left');
    assertEquals(b.node.ended()?.rejoin, false);
    assertEquals(seen, { downs: [], removed: ['left'] });
  });

  test('a node that has ended leaves no timer behind', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    void a.node.leave();
    await harness.until(() => a.node.ended() !== undefined, 10_000);
    void b.node.leave();
    await harness.until(() => b.node.ended() !== undefined, 10_000);
    a.stop();
    b.stop();
    await harness.environment.elapse(60_000);
    assertEquals(harness.environment.timerCount, 0);
  });

  test('R37: a leaver waits for its tasks', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    let finish = (): void => {};
    a.node.onLeaving((done) => void (finish = done));
    void a.node.leave();
    await harness.environment.elapse(3_000);
    assertEquals(statuses(b), ['10.0.0.1:4000 leaving', '10.0.0.2:4000 up']);
    assertEquals(b.node.view().leader?.uid, b.node.uid);
    finish();
    await harness.until(() => a.node.ended() !== undefined && consists(b, [b]), 100);
  });

  test('the tasks of a leaver are bounded', async () => {
    const harness = new Harness();
    const [a] = await harness.cluster(2, '10.0.0.', { leaveTimeoutMs: 2_000 }) as [TestNode];
    a.node.onLeaving(() => {});
    void a.node.leave();
    const took = await harness.until(() => a.node.ended() !== undefined, 3_000);
    assert(took >= 2_000 && took < 2_100, `took ${took} ms`);
  });

  test('the last node leaves at once, and all leaving together end quickly', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(5, '10.0.0.');
    for (const one of nodes) void one.node.leave();
    const took = await harness.until(() => nodes.every((one) => one.node.ended() !== undefined), 6_000);
    assert(took < 200, `took ${took} ms`);
    const alone = await harness.add('10.0.1.1:4000', []);
    void alone.node.leave();
    assertEquals(alone.node.ended()?.why, 'left');
  });

  test('R102: the address of a leaver is free for a new incarnation', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    void b.node.leave();
    await harness.until(() => b.node.ended() !== undefined, 500);
    b.stop();
    const again = await harness.add(b.address, [a.address]);
    await harness.until(() => consists(a, [a, again]) && consists(again, [a, again]), 500);
  });
});

describe('crashes', () => {
  test('R142: on loopback a refused address proves the death, within 300 ms, with two nodes', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '127.0.0.') as [TestNode, TestNode];
    a.crash();
    const took = await harness.until(() => consists(b, [b]), 2_000);
    assert(took >= 100 && took < 300, `took ${took} ms`);
  });

  test('rule 1: elsewhere a crashed member is downed after detection and stableAfter, and removed M later', async () => {
    const harness = new Harness();
    const [a, b, c] = await harness.cluster(3, '10.0.0.') as [TestNode, TestNode, TestNode];
    const start = harness.environment.clock.now();
    let downAt = 0;
    b.node.onChange((view) => {
      if (downAt === 0 && view.members.some((member) => member.status === 'down')) {
        downAt = harness.environment.clock.now();
      }
    });
    a.crash();
    await harness.until(() => [b, c].every((one) => consists(one, [b, c])), 12_000);
    const { removalMarginMs, unreachableAfterMs } = b.node.settings.timing;
    const now = harness.environment.clock.now();
    assert(now - downAt >= removalMarginMs, `removed ${now - downAt} ms after down`);
    assert(
      downAt - start >= 3_000 && downAt - start < unreachableAfterMs + 3_000 + 600,
      `down after ${downAt - start} ms`,
    );
  });

  test('R102: a restart at the same address within 100 ms, ten times in a row', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '127.0.0.');
    const [a, b] = nodes as [TestNode, TestNode];
    let c = nodes[2] as TestNode;
    for (let round = 0; round < 10; round++) {
      c.crash();
      await harness.environment.elapse(round * 11);
      c = await harness.add(c.address, [a.address, b.address]);
      const current = [a, b, c];
      const took = await harness.until(() => current.every((one) => consists(one, current)), 3_000);
      assert(took < 600, `round ${round} took ${took} ms`);
    }
  });

  test('R102: also the oldest, whose address is the only seed', async () => {
    const harness = new Harness();
    let [a, b, c] = await harness.cluster(3, '127.0.0.') as [TestNode, TestNode, TestNode];
    a.crash();
    await harness.environment.elapse(20);
    a = await harness.add(a.address, [a.address, b.address, c.address]);
    await harness.until(() => [a, b, c].every((one) => consists(one, [a, b, c])), 3_000);
    assertEquals(b.node.view().leader?.uid, b.node.uid);
  });

  test('R102: a restart on another machine is let in once the old incarnation is down', async () => {
    const harness = new Harness();
    const [a, b, c] = await harness.cluster(3, '10.0.0.') as [TestNode, TestNode, TestNode];
    b.crash();
    await harness.environment.elapse(50);
    const again = await harness.add(b.address, [a.address]);
    await harness.until(() => again.node.view().self.status === 'up', 1_000);
    assert(statuses(a).includes(`${b.address} down`), 'the margin still runs for the old one');
    await harness.until(() => [a, again, c].every((one) => consists(one, [a, again, c])), 4_000);
  });

  test('FB-080: leave, then restart before the removal', async () => {
    const harness = new Harness();
    const [a, b, c] = await harness.cluster(3, '127.0.0.') as [TestNode, TestNode, TestNode];
    for (const one of [b, c]) one.node.onLeaving(() => {});
    void b.node.leave();
    void c.node.leave();
    await harness.environment.elapse(300);
    b.crash();
    c.crash();
    const b2 = await harness.add(b.address, [a.address]);
    const c2 = await harness.add(c.address, [a.address]);
    await harness.until(() => [a, b2, c2].every((one) => consists(one, [a, b2, c2])), 3_000);
  });

  test('a lost listener is self-down', async () => {
    const harness = new Harness();
    const [a, b] = await harness.cluster(2, '10.0.0.') as [TestNode, TestNode];
    const seen = watch(b);
    b.node.events.listenerLost('EBADF');
    assertEquals(seen.downs, ['the listener was lost: EBADF']);
    await harness.until(() => statuses(a).includes(`${b.address} down`), 100);
  });
});

describe('splits', () => {
  test('R88, R93: the majority downs, the minority stops itself; both before anybody is removed', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(5, '10.0.0.');
    const left = nodes.slice(0, 2);
    const right = nodes.slice(2);
    const seen = left.map(watch);
    harness.cutAll(left, right);
    let removedAt = 0;
    right[0]?.node.onChange((view) => {
      if (removedAt === 0 && view.members.length < 5) removedAt = harness.environment.clock.now();
    });
    await harness.until(() => left.every((one) => one.node.ended() !== undefined), 8_000);
    assertEquals(removedAt, 0);
    assert(seen.every((one) => one.downs.length === 1), 'each loser is told once');
    assert(left.every((one) => one.node.ended()?.rejoin === true));
    await harness.until(() => right.every((one) => consists(one, right)), 8_000);
  });

  test('FB-075: an exact half is kept by the side of the oldest', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(4, '10.0.0.');
    harness.cutAll(nodes.slice(0, 2), nodes.slice(2));
    await harness.until(() => nodes.slice(0, 2).every((one) => consists(one, nodes.slice(0, 2))), 12_000);
    assert(nodes.slice(2).every((one) => one.node.ended() !== undefined));
  });

  test('FB-062: without a strategy a long cut heals by itself', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(4, '10.0.0.', { strategy: new ManualDowning() });
    harness.cutAll(nodes.slice(0, 2), nodes.slice(2));
    await harness.environment.elapse(60_000);
    assert(nodes.every((one) => statuses(one).length === 4 && !one.node.view().members.every((m) => m.reachable)));
    harness.healAll(nodes.slice(0, 2), nodes.slice(2));
    const whole = (one: TestNode): boolean => consists(one, nodes) && one.node.view().members.every((m) => m.reachable);
    await harness.until(() => nodes.every((one) => whole(one) && one.node.view().converged), 10_000);
  });

  test('FB-079: one broken link costs one member, the younger', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(5, '10.0.0.');
    const [a, b] = nodes as [TestNode, TestNode];
    harness.network.cut(a.address, b.address);
    await harness.until(() => b.node.ended() !== undefined, 12_000);
    const rest = nodes.filter((one) => one !== b);
    await harness.until(() => rest.every((one) => consists(one, rest)), 8_000);
  });

  test('R99: a claim about a third party does not override what a node sees', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '10.0.0.', { strategy: new ManualDowning() });
    const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
    const events: string[] = [];
    c.node.onChange((_view, changes) => void events.push(...changes.map((change) => change.kind)));
    harness.network.cut(a.address, b.address);
    await harness.environment.elapse(10_000);
    assertEquals(a.node.view().members.map((member) => member.reachable), [true, false, true]);
    assertEquals(c.node.view().members.map((member) => member.reachable), [true, true, true]);
    assertEquals(events.filter((kind) => kind === 'reachability' || kind === 'leader'), []);
  });

  test('rule 3: nobody is numbered while a member is unreachable', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '10.0.0.', { strategy: new ManualDowning() });
    const [a, , c] = nodes as [TestNode, TestNode, TestNode];
    harness.cutAll(nodes.slice(0, 2), [c]);
    await harness.environment.elapse(4_000);
    const late = await harness.add('10.0.0.4:4000', [a.address], { strategy: new ManualDowning() });
    await harness.environment.elapse(10_000);
    assertEquals(late.node.view().self.status, 'joining');
    harness.healAll(nodes.slice(0, 2), [c]);
    await harness.until(() => late.node.view().self.status === 'up', 8_000);
  });

  test('R86, FB-061: who was downed while cut off learns it after the heal', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '10.0.0.', { strategy: new ManualDowning() });
    const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
    const seen = watch(c);
    harness.cutAll([a, b], [c]);
    await harness.environment.elapse(5_000);
    assertEquals(a.node.down(c.address), 'downed');
    assertEquals(a.node.down('10.9.9.9:1'), 'unknown');
    await harness.until(() => [a, b].every((one) => consists(one, [a, b])), 5_000);
    harness.healAll([a, b], [c]);
    await harness.until(() => c.node.ended() !== undefined, 5_000);
    assertEquals(seen.downs.length, 1);
  });

  test('rule 6, P52: of two sides that both lived, the one without the oldest ends, as a whole', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(4, '10.0.0.', { strategy: new ManualDowning() });
    const [left, right] = [nodes.slice(0, 2), nodes.slice(2)];
    harness.cutAll(left, right);
    await harness.environment.elapse(5_000);
    for (const one of right) left[0]?.node.down(one.address);
    for (const one of left) right[0]?.node.down(one.address);
    await harness.until(
      () => left.every((one) => consists(one, left)) && right.every((one) => consists(one, right)),
      9_000,
    );
    harness.healAll(left, right);
    await harness.until(() => right.every((one) => one.node.ended()?.rejoin === true), 12_000);
    assert(left.every((one) => consists(one, left)));
    // That the others have called them down does not harm those that stay.
    await harness.environment.elapse(8_000);
    assert(left.every((one) => consists(one, left)));
  });

  test('rule 6: two clusters of one name: the one formed later ends', async () => {
    const harness = new Harness();
    const a = await harness.add('10.0.0.1:4000', [], { selfElection: 'immediate' });
    await harness.environment.elapse(100);
    const b = await harness.add('10.0.0.2:4000', [a.address], { selfElection: 'immediate' });
    await harness.until(() => b.node.ended()?.rejoin === true, 8_000);
    assertEquals(a.node.ended(), undefined);
  });

  test('KeepOldest with the oldest crashed, on loopback: proven death needs no strategy', async () => {
    const harness = new Harness();
    const nodes = await harness.cluster(3, '127.0.0.', { strategy: new KeepOldest() });
    nodes[0]?.crash();
    const rest = nodes.slice(1);
    await harness.until(() => rest.every((one) => consists(one, rest)), 1_000);
  });
});
