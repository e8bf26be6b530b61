import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects, assertStringIncludes } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import type { SpawnError } from '../../src/singleton/spawn_errors.ts';
import { decideSpawn } from '../../src/singleton/spawn_decision.ts';
import { registrationValue, spawnKey } from '../../src/singleton/spawn_registration.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { MemoryCluster } from '../facade/memory_cluster.ts';
import { member, viewOf } from './manager_world.ts';
import { clusterOf, count, failure, Reporter, Scheduler, singletonOf } from './spawn_world.ts';

describe('spawn', () => {
  test('from any node: it runs on the oldest, with its props, and every node reaches it, later ones too', async () => {
    const cluster = await clusterOf(3);
    const ref = await cluster.get(singletonOf(cluster, 2).spawn('jobs', Scheduler, { props: { limit: 5 } }));
    assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[0]!.address);
    assertEquals(await cluster.get(ref.ask('props')), { limit: 5 });
    const late = await cluster.join({ kinds: [Scheduler] });
    assertEquals(
      await cluster.get(late.cluster.singleton.ref<'where'>('jobs').ask('where')),
      cluster.nodes[0]!.address,
    );
    assertEquals([count.live, count.peak], [1, 1]);
  });

  test('G1, G10: two kinds from two nodes both run, a third node reaches them, and the first again from elsewhere is one lookup', async () => {
    const cluster = await clusterOf(3);
    await cluster.pass(1_000);
    const spawned = [singletonOf(cluster, 0).spawn('one', Scheduler), singletonOf(cluster, 1).spawn('two', Reporter)];
    await cluster.get(Promise.all(spawned));
    for (const name of ['one', 'two']) {
      const where = await cluster.get(singletonOf(cluster, 2).ref<'where'>(name).ask('where'));
      assertEquals(where, cluster.nodes[0]!.address);
    }
    await cluster.get(singletonOf(cluster, 1).spawn('one', Scheduler, { retries: 1 }));
    await cluster.pass(500);
    assertEquals([count.live, count.peak], [2, 2]);
  });

  test('G18: fifteen calls at once from all nodes give one instance and one ref', async () => {
    const cluster = await clusterOf(3);
    const calls = Array.from({ length: 15 }, (_, n) => singletonOf(cluster, n % 3).spawn('jobs', Scheduler));
    const refs = await cluster.get(Promise.all(calls));
    for (const [n, ref] of refs.entries()) assert(ref === refs[n % 3]);
    const places = new Set<unknown>();
    for (const ref of refs) places.add(await cluster.get((ref as ActorRef<'where'>).ask('where')));
    assertEquals([places.size, count.live, count.peak], [1, 1, 1]);
  });

  test('S1: started by one node in the turn in which another spawns it: one instance, a warning, and one kind after the stop', async () => {
    const cluster = await clusterOf(3);
    cluster.delayMs = 20;
    singletonOf(cluster, 2).start(SingletonKey.of('jobs'), () => new Scheduler('mine') as never);
    const spawned = singletonOf(cluster, 0).spawn('jobs', Scheduler, { props: 'registered' });
    const ref = await cluster.get(spawned);
    await cluster.pass(2_000);
    assertEquals([count.live, count.peak], [1, 1]);
    assertEquals(await cluster.get(ref.ask('props')), 'registered', 'the host has its own kind of it');
    const warned = cluster.environment.logged.filter(({ level, message }) =>
      level === 'warn' && /itself/.test(message)
    );
    assertEquals(warned.length, 1);
    await cluster.leave(cluster.nodes[0]!);
    await cluster.leave(cluster.nodes[0]!);
    assertEquals(await cluster.get(singletonOf(cluster, 0).ref<'props'>('jobs').ask('props')), 'mine');
    singletonOf(cluster, 0).stop('jobs');
    const after = singletonOf(cluster, 0).ref<'props'>('jobs').ask('props', 10_000);
    assertEquals(await cluster.get(after), 'registered');
    assertEquals([count.live, count.peak], [1, 1]);
  });

  test('G21: it moves on a leave and comes back after a crash, options included', async () => {
    const cluster = await clusterOf(4);
    const ref = await cluster.get(singletonOf(cluster, 3).spawn('jobs', Scheduler, { props: 7 }));
    await cluster.get(ref.ask('where'));
    await cluster.leave(cluster.nodes[0]!);
    assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[0]!.address);
    cluster.network.crash(cluster.nodes[0]!.address);
    await cluster.pass(1_000);
    assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[1]!.address);
    assertEquals(await cluster.get(ref.ask('props')), 7);
  });

  test('despawn stops it everywhere, and the name is free again', async () => {
    const cluster = await clusterOf(3);
    await cluster.get(singletonOf(cluster, 1).spawn('jobs', Scheduler));
    await cluster.until(() => count.live === 1);
    assertEquals(await cluster.get(singletonOf(cluster, 2).despawn('jobs')), true);
    await cluster.until(() => count.live === 0);
    await cluster.pass(100);
    assertEquals(await cluster.get(singletonOf(cluster, 0).despawn('jobs')), false);
    await cluster.get(singletonOf(cluster, 1).spawn('other', Scheduler));
    await cluster.until(() => count.live === 1);
  });

  test('G7, G27: a role places it on the oldest member that carries it, and is part of its identity', async () => {
    const cluster = await clusterOf(1);
    await cluster.join({ kinds: [Scheduler], roles: ['edge'] });
    await cluster.join({ kinds: [Scheduler], roles: ['edge'] });
    const edge = await cluster.get(singletonOf(cluster, 2).spawn('edge-jobs', Scheduler, { role: 'edge' }));
    assertEquals(await cluster.get(edge.ask('where')), cluster.nodes[1]!.address);
    const any = await cluster.get(singletonOf(cluster, 2).spawn('jobs', Scheduler));
    assertEquals(await cluster.get(any.ask('where')), cluster.nodes[0]!.address);
  });

  test('never on a member without the kind', async () => {
    count.live = 0;
    const cluster = new MemoryCluster();
    await cluster.join();
    await cluster.join({ kinds: [{ name: 'scheduler', factory: (props: unknown) => new Scheduler(props) }] });
    const ref = await cluster.get(singletonOf(cluster, 0).spawn('jobs', 'scheduler'));
    assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[1]!.address);
  });
});

describe('refusals', () => {
  test('G1: two names for one kind at one moment: one wins, the other is told the winner', async () => {
    const cluster = await clusterOf(3);
    const outcomes = await cluster.get(
      Promise.allSettled([
        singletonOf(cluster, 1).spawn('a', Scheduler),
        singletonOf(cluster, 2).spawn('b', Scheduler),
      ]),
    );
    const lost = outcomes.filter((outcome) => outcome.status === 'rejected');
    assertEquals(lost.length, 1);
    const error = lost[0]!.reason as SpawnError;
    assertEquals([error.name, error.code, error.retryable], [
      'SingletonAlreadyExistsError',
      'singleton-already-exists',
      false,
    ]);
    assertStringIncludes(error.message, outcomes[0]!.status === 'fulfilled' ? "'a'" : "'b'");
  });

  test('G3–G6: the same errors from the leader and from any other node', async () => {
    const cluster = await clusterOf(2);
    cluster.nodes[0]!.system.spawn(Scheduler as never, 'taken');
    for (const at of [0, 1]) {
      const singleton = singletonOf(cluster, at);
      const errors = [
        await failure(cluster, singleton.spawn('jobs', 'no-such-kind')),
        await failure(cluster, singleton.spawn('jobs', Scheduler, { role: 'nobody', retries: 2, waitIntervalMs: 1 })),
        await failure(cluster, singleton.spawn('taken', Scheduler)),
      ];
      assertEquals(errors.map((error) => [error.name, error.code, error.retryable]), [
        ['KindNotRegisteredError', 'kind-not-registered', false],
        ['NoEligibleMemberError', 'no-eligible-member', true],
        ['ActorAlreadyExistsError', 'actor-already-exists', false],
      ]);
      assertStringIncludes(errors[1]!.message, 'nobody');
    }
  });

  test('G6, G15: a role that appears while it is retried', async () => {
    const cluster = await clusterOf(1);
    const call = singletonOf(cluster, 0).spawn('jobs', Scheduler, { role: 'edge', waitIntervalMs: 2_000, retries: 4 });
    await cluster.pass(500);
    await cluster.join({ kinds: [Scheduler], roles: ['edge'] });
    const ref = await cluster.get(call);
    assertEquals(await cluster.get(ref.ask('where')), cluster.nodes[1]!.address);
  });

  test('G2: bad names, bad options, an abort, and no cluster', async () => {
    const cluster = await clusterOf(1);
    const singleton = singletonOf(cluster, 0);
    for (const name of ['', 'a/b', 'x'.repeat(256), '..']) {
      assertStringIncludes(
        (await assertRejects(() => singleton.spawn(name, Scheduler), OptionsError)).message,
        'typeName',
      );
    }
    await assertRejects(() => singleton.spawn('jobs', Scheduler, { retries: 2 ** 40 }), OptionsError, 'retries');
    await assertRejects(() => singleton.spawn('jobs', Scheduler, { mailbox: 1 } as never), OptionsError, 'mailbox');
    const abort = new AbortController();
    abort.abort();
    const aborted = await failure(cluster, singleton.spawn('jobs', Scheduler, { signal: abort.signal }));
    assertEquals(aborted.code, 'aborted');
    const environment = new ManualEnvironment();
    const system = ActorSystem.create('x', { environment, logger: environment.log });
    const disabled = await assertRejects(() => system.spawnSingleton('jobs', Scheduler));
    assertEquals((disabled as SpawnError).code, 'cluster-disabled');
    assertEquals(
      await cluster.get((await cluster.get(cluster.nodes[0]!.system.spawnSingleton('jobs', Scheduler))).ask('where')),
      cluster.nodes[0]!.address,
    );
  });
});

test('the decision of the leader, case by case', () => {
  const wanted = { name: 'a', kind: 'k', role: undefined, props: undefined, settings: {} };
  const able = member('m', { upNumber: 1, started: new Map([['kind/k', { generation: 1, role: undefined }]]) });
  const entry = (name: string, kind: string) => {
    const key = spawnKey(name);
    return [key, { key, version: 1, by: 'm', value: registrationValue({ ...wanted, name, kind }) }] as const;
  };
  const decide = (members = [able], entries: readonly (readonly [string, never])[] = []) =>
    decideSpawn(viewOf(members, 'm', new Map(entries as never)), wanted);
  assertEquals(decide().kind, 'register');
  const codes = [
    decide([able], [entry('a', 'other')] as never),
    decide([able], [entry('b', 'k')] as never),
    decide([member('m', { upNumber: 1 })]),
    decide([member('m', { status: 'leaving', upNumber: 1 })]),
    decide([{ ...able, started: new Map([...able.started, ['a', { generation: 1, role: undefined }]]) }]),
  ].map((decision) => decision.kind === 'refuse' ? decision.error.code : decision.kind);
  assertEquals(codes, [
    'actor-already-exists',
    'singleton-already-exists',
    'kind-not-registered',
    'no-eligible-member',
    'actor-already-exists',
  ]);
  assertEquals(decide([able], [entry('a', 'k')] as never).kind, 'exists');
});
