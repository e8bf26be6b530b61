/** Registrations on whole nodes: what runs follows what is registered, whatever happens to it, to nodes and to names. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects, assertStringIncludes } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { decideSpawn } from '../../src/singleton/spawn_decision.ts';
import { kindMark, registrationValue, settled, spawnKey } from '../../src/singleton/spawn_registration.ts';
import { settingsOf, strategyOf } from '../../src/singleton/spawn_settings.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { member, viewOf } from './manager_world.ts';
import { clusterOf, count, failure, Reporter, Scheduler, singletonOf } from './spawn_world.ts';

describe('what is registered runs', () => {
  test('in a cluster in which nothing else has happened for long', async () => {
    const cluster = await clusterOf(3);
    await cluster.pass(30_000);
    const options = { retries: 1 };
    await cluster.get(singletonOf(cluster, 2).spawn('jobs', Scheduler, options));
    await cluster.get(singletonOf(cluster, 0).spawn('reports', Reporter, options));
    await cluster.until(() => count.live === 2);
  });

  test('under the same name as another kind, at once: the old one is gone before, also where the removal was not seen', async () => {
    const cluster = await clusterOf(4);
    for (let turn = 0; turn < 12; turn += 1) {
      const at = (offset: number) => singletonOf(cluster, (turn + offset) % 4);
      const kind = turn % 2 === 0 ? Scheduler : Reporter;
      const ref = await cluster.get(at(0).spawn('jobs', kind, { props: turn }));
      assertEquals(await cluster.get(ref.ask('props')), turn);
      if (turn % 3 === 0) await cluster.pass(200);
      assertEquals(await cluster.get(at(1).despawn('jobs')), true);
    }
    await cluster.until(() => count.live === 0);
    assertEquals(count.peak, 1);
  });

  test('a node that started the name itself keeps its own, and takes part once it has stopped that', async () => {
    const cluster = await clusterOf(2);
    const own = SingletonKey.of<'where'>('own');
    singletonOf(cluster, 1).start(own, () => new Scheduler('mine') as never);
    await cluster.until(() => count.live === 1);
    const taken = await failure(cluster, singletonOf(cluster, 0).spawn('own', Scheduler));
    assertEquals(taken.code, 'actor-already-exists');
    singletonOf(cluster, 1).stop(own);
    await cluster.until(() => count.live === 0);
    const ref = await cluster.get(singletonOf(cluster, 0).spawn('own', Scheduler, { props: 'registered' }));
    assertEquals(await cluster.get(ref.ask('props')), 'registered');
    await cluster.leave(cluster.nodes[0]!);
    assertEquals(await cluster.get(singletonOf(cluster, 0).ref<'props'>('own').ask('props')), 'registered');
  });

  test('a name that was removed and then started by a node itself is that node’s', async () => {
    const cluster = await clusterOf(2);
    await cluster.get(singletonOf(cluster, 0).spawn('jobs', Scheduler));
    await cluster.get(singletonOf(cluster, 0).despawn('jobs'));
    await cluster.until(() => count.live === 0 && !singletonOf(cluster, 1).isStarted('jobs'));
    singletonOf(cluster, 1).start(SingletonKey.of('jobs'), () => new Scheduler('mine') as never);
    await cluster.pass(100);
    const error = await failure(cluster, singletonOf(cluster, 0).spawn('jobs', Scheduler));
    assertEquals([error.code, count.live], ['actor-already-exists', 1]);
  });

  test('G19, G24: its supervisor goes wherever it goes', async () => {
    const cluster = await clusterOf(2);
    const options = { supervisor: { directive: 'resume' as const }, props: 5 };
    const ref = await cluster.get(singletonOf(cluster, 1).spawn('jobs', Scheduler, options));
    for (const round of [0, 1]) {
      await cluster.until(() => count.live === 1);
      const before = count.peak;
      ref.tell('fail');
      assertEquals(await cluster.get(ref.ask('props')), 5);
      assertEquals([count.live, count.peak], [1, before]);
      if (round === 0) await cluster.leave(cluster.nodes[0]!);
    }
  });

  test('it is shown by every node, with its kind, also when nobody can host it', async () => {
    const cluster = await clusterOf(1);
    await cluster.join({ http: true });
    await cluster.get(singletonOf(cluster, 1).spawn('jobs', Scheduler));
    const shown = async (): Promise<Record<string, unknown>> => {
      const response = await cluster.get(Promise.resolve(cluster.nodes.at(-1)!.cluster.fetch(
        new Request('http://127.0.0.1/cluster/singletons'),
      )));
      return (await response.json()).singletons.find((one: { name: string }) => one.name === 'jobs');
    };
    await cluster.until(() => count.live === 1);
    await cluster.pass(50);
    const { kind, host } = await shown();
    assertEquals([kind, host], ['scheduler', cluster.nodes[0]!.address]);
    await cluster.leave(cluster.nodes[0]!);
    const orphan = await shown();
    assertEquals(orphan['host'], null);
    assertStringIncludes(String(orphan['problem']), 'has the kind scheduler');
  });
});

describe('what is registered stays', () => {
  test('G26, G28, G30: its host restarts at the same address: one instance, elsewhere, and the newcomer may host it later', async () => {
    const cluster = await clusterOf(3);
    const [a, b] = cluster.nodes.map((node) => node.address) as [string, string];
    const ref = await cluster.get(singletonOf(cluster, 2).spawn('jobs', Scheduler, { props: 'p' }));
    assertEquals(await cluster.get(ref.ask('where')), a);
    cluster.network.crash(a);
    // The instance in the crashed process is counted no more.
    count.live -= 1;
    const seeds = [b];
    const again = cluster.join({
      kinds: [Scheduler, Reporter],
      seeds,
      transport: (identity) => cluster.network.transport({ address: a, ...identity }),
    });
    await cluster.get(again);
    assertEquals(await cluster.get(ref.ask('where')), b);
    await cluster.until(() => count.live === 1);
    const survivors = cluster.nodes.filter((node) => node.address === b || node.system === cluster.nodes[2]!.system);
    for (const node of survivors) await cluster.leave(node);
    const newcomer = cluster.nodes.at(-1)!;
    assertEquals(await cluster.get(newcomer.cluster.singleton.ref<'where'>('jobs').ask('where')), a);
    assertEquals(await cluster.get(newcomer.cluster.singleton.ref<'props'>('jobs').ask('props')), 'p');
  });

  test('G15, G16: when the leader dies in the middle of the call', async () => {
    const cluster = await clusterOf(3);
    const call = singletonOf(cluster, 2).spawn('jobs', Scheduler, { retries: 8 });
    cluster.network.crash(cluster.nodes[0]!.address);
    const ref = await cluster.get(call);
    assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[1]!.address);
  });

  test('a call on the losing side of a split is answered after the node has joined again', async () => {
    const cluster = await clusterOf(3);
    const [a, b, c] = cluster.nodes.map((node) => node.address) as [string, string, string];
    cluster.network.cut(a, b);
    cluster.network.cut(a, c);
    await cluster.pass(1_000);
    // It leads, as far as it knows, but a majority does not hear of it.
    const options = { retries: 40, spawnTimeoutMs: 120_000, waitIntervalMs: 1_000 };
    let ref: Awaited<ReturnType<typeof call>> | undefined;
    const call = () => singletonOf(cluster, 0).spawn('jobs', Scheduler, options);
    const done = call().then((got) => ref = got);
    await cluster.pass(10_000);
    assertEquals(ref, undefined);
    cluster.network.heal(a, b);
    cluster.network.heal(a, c);
    await cluster.get(done);
    await cluster.until(() => count.live === 1);
    assertEquals(count.peak, 1);
    assertEquals(await cluster.get(ref!.ask('where')), b);
  });

  test('a removal that no majority has heard of is no success', async () => {
    const cluster = await clusterOf(3);
    await cluster.get(singletonOf(cluster, 0).spawn('jobs', Scheduler));
    await cluster.until(() => count.live === 1);
    const [a, b, c] = cluster.nodes.map((node) => node.address) as [string, string, string];
    cluster.network.cut(c, a);
    cluster.network.cut(c, b);
    const error = await failure(cluster, singletonOf(cluster, 2).despawn('jobs', { retries: 1 }));
    assertEquals([error.code, error.retryable], ['no-quorum', true]);
    await cluster.pass(20_000);
    assertEquals(count.live, 1);
  });

  test('with a call that the node leaves in the middle of: no cluster', async () => {
    const cluster = await clusterOf(2);
    const call = failure(cluster, singletonOf(cluster, 1).spawn('jobs', Scheduler, { role: 'nobody', retries: 100 }));
    await cluster.pass(100);
    await cluster.get(cluster.nodes[1]!.cluster.leave());
    assertEquals((await call).code, 'cluster-disabled');
    assertEquals((await failure(cluster, singletonOf(cluster, 1).despawn('jobs'))).code, 'cluster-disabled');
  });
});

describe('what may be registered', () => {
  test('props that cannot travel are refused before anybody is asked; what travels is a copy', async () => {
    const cluster = await clusterOf(2);
    const ref = await cluster.get(singletonOf(cluster, 0).spawn('reports', Reporter));
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    const bad = [
      () => 1,
      { deep: [() => 1] },
      cycle,
      ref,
      { ref },
      Symbol('x'),
      'x'.repeat(70_000),
      new Uint8Array(70_000),
    ];
    for (const props of bad) {
      const error = await assertRejects(
        () => singletonOf(cluster, 0).spawn('jobs', Scheduler, { props }),
        OptionsError,
      );
      assertStringIncludes(error.message, 'SpawnOptions.props');
      assert(error.message.length < 500, 'the value is not shown');
    }
    const props = { list: [1], left: undefined, when: new Date(5), map: new Map([['k', new Set([1n])]]), not: NaN };
    await cluster.get(singletonOf(cluster, 0).spawn('jobs', Scheduler, { props }));
    props.list.push(2);
    await cluster.pass(5_000);
    // A state that nodes hash differently never converges, and then nobody is admitted.
    await cluster.join({ kinds: [Scheduler] });
    const got = await cluster.get(singletonOf(cluster, 2).ref<'props'>('jobs').ask<typeof props>('props'));
    assertEquals([got.list, got.when, got.map.get('k')?.has(1n), Number.isNaN(got.not)], [
      [1],
      new Date(5),
      true,
      true,
    ]);
  });

  test('G25: a registration is the same after any number of journeys', () => {
    const wanted = { name: 'a', kind: 'k', role: undefined, settings: {} };
    for (
      const props of [undefined, null, -0, 2 ** 53, 1e300, '\ud800', [undefined], { a: undefined }, new Float64Array(2)]
    ) {
      try {
        const once = settled({ ...wanted, props });
        assertEquals(settled(once), once);
      } catch (error) {
        assert(error instanceof OptionsError, String(error));
      }
    }
  });

  test('G25: settings of this version are kept, of a later one left out, wrong ones refused', () => {
    const supervisor = { directive: 'restart', maxRestarts: 2, withinMs: 5, backoff: { minMs: 1, maxMs: 2 } } as const;
    const settings = { delivery: 'at-least-once', overflow: 'fail-ask', bufferSize: 7, supervisor } as const;
    assertEquals(settingsOf({ ...settings, later: 1 } as never), settings);
    strategyOf(supervisor);
    const wrong = [
      { bufferSize: 0 },
      { overflow: 'x' },
      { delivery: 1 },
      { supervisor: { directive: 'x' } },
      { supervisor: { backoff: { minMs: 3, maxMs: 1 } } },
      { supervisor: { mailbox: 1 } },
    ];
    for (const one of wrong) assertThrowsOptions(() => settingsOf(one as never));
  });

  test('bounded: their number, the names ever given, and what they add to each gossip message', () => {
    const wanted = { name: 'one-more', kind: 'k', role: undefined, props: undefined, settings: {} };
    const able = member('m', { upNumber: 1, started: new Map([[kindMark('k'), { generation: 1, role: undefined }]]) });
    const decide = (many: number, value: (n: number) => unknown, members = [able]) => {
      const entries = new Map(Array.from({ length: many }, (_, n) => {
        const key = spawnKey(`n${n}`);
        return [key, { key, version: 1, by: 'm', value: value(n) }] as const;
      }));
      const decision = decideSpawn(viewOf(members, 'm', entries), wanted);
      return decision.kind === 'refuse' ? `${decision.error.code}: ${decision.error.message}` : decision.kind;
    };
    const small = (n: number) => registrationValue({ ...wanted, kind: `k${n}` });
    const three = [able, member('n', { upNumber: 2 }), member('o', { upNumber: 3 })];
    assertEquals(decide(9_999, small, three), 'register', 'ten thousand small ones fit three members');
    assertStringIncludes(decide(10_000, small), 'registry-full: 10000 singletons');
    assertStringIncludes(decide(20_000, () => null), 'registry-full: 20000 names');
    const large = (n: number) => registrationValue({ ...wanted, kind: `k${n}`, props: 'x'.repeat(60_000) });
    assertEquals(decide(30, large), 'register');
    assertStringIncludes(decide(40, large), 'bytes of every gossip');
  });

  test('a role that nobody has: after the attempts, an error that names it', async () => {
    const cluster = await clusterOf(2);
    for (const at of [0, 1]) {
      const options = { role: 'painter', retries: 3, waitIntervalMs: 100 };
      const before = cluster.environment.clock.now();
      const error = await failure(cluster, singletonOf(cluster, at).spawn('jobs', Scheduler, options));
      assertEquals([error.name, error.retryable], ['NoEligibleMemberError', true]);
      assertStringIncludes(error.message, 'painter');
      assert(cluster.environment.clock.now() - before >= 300, 'two waits');
    }
  });

  test('G20: a spawn that fails leaves nothing behind', async () => {
    const cluster = await clusterOf(2);
    cluster.nodes[0]!.system.spawn(Scheduler as never, 'taken');
    await cluster.until(() => count.live === 1);
    assertEquals(
      (await failure(cluster, singletonOf(cluster, 1).spawn('taken', Scheduler))).code,
      'actor-already-exists',
    );
    await cluster.pass(1_000);
    assertEquals([count.live, singletonOf(cluster, 0).isStarted('taken')], [1, false]);
    await cluster.get(singletonOf(cluster, 1).spawn('free', Scheduler));
  });

  test('names that are as long as may be, and in any script', async () => {
    const cluster = await clusterOf(2);
    for (const name of ['x'.repeat(247), 'größe', '仕事', 'a b', '👷'.repeat(100)]) {
      const ref = await cluster.get(singletonOf(cluster, 1).spawn(name, Scheduler));
      assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[0]!.address, name);
      assertEquals(await cluster.get(singletonOf(cluster, 0).despawn(name)), true);
    }
  });
});

function assertThrowsOptions(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    assert(error instanceof OptionsError, String(error));
    return;
  }
  throw new Error('it was accepted');
}

test('a cluster that shrinks to one node keeps what is registered, and what joins later has it', async () => {
  const cluster = new MemoryCluster();
  await cluster.grow(3, { kinds: [Scheduler] });
  count.live = 0;
  await cluster.get(singletonOf(cluster, 0).spawn('jobs', Scheduler, { props: 1 }));
  await cluster.leave(cluster.nodes[0]!);
  await cluster.leave(cluster.nodes[0]!);
  await cluster.join({ kinds: [Scheduler] });
  await cluster.leave(cluster.nodes[0]!);
  assertEquals(await cluster.get(singletonOf(cluster, 0).ref<'props'>('jobs').ask('props')), 1);
});
