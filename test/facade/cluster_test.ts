import { Hono } from 'hono';
import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects, assertStringIncludes } from '@std/assert';
import { SystemTerminatedError } from '../../src/actor/errors.ts';
import { OptionsError } from '../../src/actor/options.ts';
import { ActorSystem } from '../../src/actor/system.ts';
import type { ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { Cluster } from '../../src/facade/cluster.ts';
import type { ClusterEvent } from '../../src/facade/cluster_events.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { counterClass, Journal } from '../singleton/fixtures.ts';
import { MemoryCluster } from './memory_cluster.ts';

describe('membership as users see it', () => {
  test('leader, members and self, the same everywhere', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(3);
    const first = cluster.nodes[0]!;
    for (const { cluster: each } of cluster.nodes) {
      assertEquals(each.leader()?.address, first.address);
      assertEquals(each.upMembers().map((member) => member.upNumber), [1, 2, 3]);
      assertEquals(each.isLeader(), each.address === first.address);
      assertEquals(each.selfMember.uid, each.uid);
      assertEquals(each.readiness(), undefined);
    }
  });

  test('R104: replay as events or as one state, inside subscribe, to that listener only', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const { cluster: first } = cluster.nodes[0]!;
    const events: ClusterEvent[] = [];
    const cancel = first.subscribe((event) => events.push(event));
    assertEquals(events.map((event) => event.kind), [
      'MemberJoined',
      'MemberUp',
      'MemberJoined',
      'MemberUp',
      'LeaderChanged',
    ]);
    const states: ClusterEvent[] = [];
    first.subscribe((event) => states.push(event), { replayMode: 'snapshot' })();
    assertEquals(states.map((event) => event.kind), ['CurrentClusterState']);
    events.length = 0;
    const third = await cluster.join();
    const about = events.filter((event) => 'member' in event && event.member.address === third.address);
    assertEquals(about.map((event) => event.kind), ['MemberJoined', 'MemberUp']);
    events.length = 0;
    await cluster.leave(third);
    await cluster.pass(100);
    assertEquals(
      events.filter((event) => 'member' in event && event.member.address === third.address).map((event) => event.kind),
      ['MemberLeft', 'MemberExited', 'MemberRemoved'],
    );
    cancel();
    events.length = 0;
    await cluster.join();
    assertEquals(events, []);
  });

  test('R106: a node that leaves hears that it is removed; whenEnded says why', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const node = cluster.nodes[0]!;
    const kinds: string[] = [];
    node.cluster.subscribe((event) => kinds.push(event.kind));
    const ended = node.cluster.whenEnded;
    await cluster.leave(node);
    assertEquals((await cluster.get(ended)).why, 'left');
    assert(kinds.includes('SelfRemoved'));
  });

  test('R95: an operator takes a member out; it stops by itself', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(3, { rejoin: false });
    const [first, , third] = cluster.nodes.map((node) => node.cluster);
    assertEquals(first!.down('10.0.0.9:1'), false);
    const ended = third!.whenEnded;
    assertEquals(first!.down(third!.address), true);
    assertStringIncludes((await cluster.get(ended)).why, 'down');
    await cluster.until(() => first!.getMembers().length === 2);
  });

  test('singleton events reach subscribers', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2);
    const events: ClusterEvent[] = [];
    for (const node of cluster.nodes) node.cluster.subscribe((event) => events.push(event));
    const Counter = counterClass(new Journal());
    for (const node of cluster.nodes) node.cluster.singleton.start(Counter);
    await cluster.pass(50);
    await cluster.leave(cluster.nodes[0]!);
    const about = events.filter((event) => event.kind.startsWith('Singleton'));
    assertEquals(about.map((event) => event.kind), [
      'SingletonHosted',
      'SingletonStopped',
      'SingletonHosted',
      'SingletonHandOver',
    ]);
  });
});

describe('bad input', () => {
  test('bad options and a failed join leave the system as it was', async () => {
    const environment = new ManualEnvironment();
    const system = ActorSystem.create('x', { environment, logger: environment.log });
    await assertRejects(() => Cluster.join(system, { port: -1 }), OptionsError, 'port');
    const cluster = new MemoryCluster();
    await assertRejects(
      () => cluster.join({ seeds: ['127.0.0.1:9'], joinTimeoutMs: 2_000 }),
      Error,
      '127.0.0.1:9',
    );
    await cluster.join({ seeds: [] });
  });

  test('what is no actor system, or one that is ending, is refused at once', async () => {
    for (const none of [undefined, null, {}, 'shop']) {
      const error = await assertRejects(() => Cluster.join(none as never), OptionsError);
      assertStringIncludes(error.message, 'Cluster.join.system: must be an actor system');
    }
    const cluster = new MemoryCluster();
    const { environment, network } = cluster;
    const system = ActorSystem.create('x', { environment, logger: environment.log });
    const transport: ClusterSettings['transport'] = (identity) => network.transport({ address: 'h:1', ...identity });
    const joining = Cluster.join(system, { http: false, transport });
    const ended = system.terminate();
    const refused = assertRejects(() => joining, SystemTerminatedError, "actor system 'x' is terminating");
    await assertRejects(() => Cluster.join(system, { port: 0 }), SystemTerminatedError);
    await cluster.get(ended);
    await cluster.get(refused);
    await assertRejects(() => Cluster.join(system, { port: 0 }), SystemTerminatedError);
    await cluster.join({ seeds: [] }, 'h:1');
  });
});

describe('HTTP', () => {
  test('reports what is there', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2, { http: true, token: 'a-token-of-some-length' });
    const Counter = counterClass(new Journal());
    const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Counter));
    refs[1]!.tell(1);
    await cluster.get(refs[1]!.ask('count'));
    const { cluster: second } = cluster.nodes[1]!;
    const read = async (path: string, init?: RequestInit) => {
      const response = await second.fetch(new Request(`http://node${path}`, init));
      return { status: response.status, body: await response.json() };
    };
    assertEquals((await read('/ready')).status, 200);
    const members = (await read('/cluster/members')).body;
    assertEquals(members.members.map((member: { upNumber: number }) => member.upNumber), [1, 2]);
    const detail = (await read('/cluster/singletons/counter')).body;
    assertEquals([detail.host, detail.state], [cluster.nodes[0]!.address, 'younger']);
    const { told, acknowledged, deadLettered, outcomeUnknown } = detail.counters;
    assertEquals([told, acknowledged + deadLettered + outcomeUnknown + detail.buffered], [2, 2]);
    const metrics = await (await second.fetch(new Request('http://node/metrics'))).text();
    assertStringIncludes(metrics, 'singlet_members{status="up"} 2');
    const move = { method: 'POST', headers: { authorization: 'Bearer a-token-of-some-length' } };
    assertEquals((await read('/cluster/singletons/counter/move', { method: 'POST' })).status, 401);
    assertEquals((await read('/cluster/singletons/counter/move', move)).status, 200);
    await cluster.until(() => second.singleton.hostOf('counter') === second.address);
    assertEquals(await cluster.get(refs[0]!.ask('where')), second.address);
    await cluster.get(refs[0]!.ask('where'));
    assertEquals((await read('/cluster/singletons/counter')).body.lastHandOver.reason, 'planned');
  });

  test('its app can stand below a path of another server', async () => {
    const cluster = new MemoryCluster();
    const { cluster: node } = await cluster.join({ http: true });
    const mine = new Hono().mount('/node', (request) => node.fetch(request));
    const read = async (path: string) => await (await mine.request(path)).json();
    assertEquals((await read('/node/cluster/members')).self, node.address);
    assertEquals((await read('/node/cluster/nothing')).error.code, 'not-found');
  });

  test('every node tells of a move, and exactly one says that an instance runs on it', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(3, { http: true });
    const Counter = counterClass(new Journal());
    const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Counter));
    await cluster.get(refs[2]!.ask('count'));
    const [first, second, third] = cluster.nodes.map((node) => node.cluster) as [Cluster, Cluster, Cluster];
    const text = async (node: Cluster, path: string) =>
      await (await node.fetch(new Request(`http://node${path}`))).text();
    const active = async () => {
      const all = await Promise.all([first, second, third].map((node) => text(node, '/metrics')));
      return all.map((metrics) => /singlet_singleton_active\{singleton="counter"\} (\d)/.exec(metrics)?.[1]).join('');
    };
    assertEquals(await active(), '100');
    first.singleton.move('counter', second.address);
    await cluster.until(() => third.singleton.hostOf('counter') === second.address);
    assertEquals(await active(), '010');
    const seenBy = async (node: Cluster) => {
      const reader = (await node.fetch(new Request('http://node/cluster/events?replay=100'))).body!.getReader();
      const { value } = await reader.read();
      await reader.cancel();
      const events = [...new TextDecoder().decode(value).matchAll(/^data: (.*)$/gm)].map((match) =>
        JSON.parse(match[1]!)
      );
      const moves = events.filter(({ kind, from }) => from && (kind === 'singleton-hosted' || kind === 'hand-over'));
      return moves.map(({ kind, from, address }) => [kind, from, address]);
    };
    assertEquals(await seenBy(first), [['hand-over', first.address, second.address]]);
    assertEquals(await seenBy(second), [['singleton-hosted', first.address, second.address]]);
    assertEquals(await seenBy(third), [['hand-over', first.address, second.address]]);
  });
});

describe('rule 6 and R145: a node that was put out comes back as a new member', () => {
  test('refs, buffers and what was started go on; what was on its way is settled', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(3);
    const journal = new Journal();
    const Counter = counterClass(journal);
    const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Counter));
    await cluster.get(refs[0]!.ask('count'));
    const out = cluster.nodes[0]!;
    const uid = out.cluster.uid;
    const events: string[] = [];
    out.cluster.subscribe((event) => events.push(event.kind));
    events.length = 0;
    cluster.nodes[1]!.cluster.down(out.address);
    for (let n = 0; n < 10; n += 1) refs[0]!.tell(n);
    await cluster.until(() => out.cluster.uid !== uid && out.cluster.readiness() === undefined, 120_000);
    assertEquals(events.filter((kind) => kind.startsWith('Self')), ['SelfRemoved', 'SelfUp']);
    assertEquals(out.cluster.selfMember.upNumber, 4);
    await cluster.until(() => out.cluster.singleton.find('counter')!.proxy.stream.buffered === 0);
    const { told, acknowledged, deadLettered } = out.cluster.singleton.find('counter')!.proxy.stream.ledger();
    assertEquals(told, acknowledged + deadLettered);
    assertEquals(await cluster.get(refs[0]!.ask('where')), cluster.nodes[1]!.address);
    assertEquals(journal.peak, 1);
    await cluster.leave(cluster.nodes[1]!);
    await cluster.leave(cluster.nodes[1]!);
    await cluster.until(() => journal.live === 1);
    assertEquals(await cluster.get(refs[0]!.ask('where')), out.address);
    await cluster.leave(out);
  });

  test('with rejoin: false it stays out and says why', async () => {
    const cluster = new MemoryCluster();
    await cluster.join();
    const out = await cluster.join({ rejoin: false });
    cluster.nodes[0]!.cluster.down(out.address);
    assertStringIncludes((await cluster.get(out.cluster.whenEnded)).why, 'down');
  });

  test('after a split with manual downing that both sides survived, one side gives way and joins the other', async () => {
    const cluster = new MemoryCluster();
    await cluster.grow(2, { downing: 'manual' });
    const journal = new Journal();
    const Counter = counterClass(journal);
    for (const node of cluster.nodes) node.cluster.singleton.start(Counter);
    await cluster.until(() => journal.live === 1);
    const [a, b] = cluster.nodes as [typeof cluster.nodes[0], typeof cluster.nodes[0]];
    cluster.network.cut(a.address, b.address);
    await cluster.pass(4_000);
    b.cluster.down(a.address);
    a.cluster.down(b.address);
    await cluster.until(() => journal.live === 2, 60_000);
    cluster.network.heal(a.address, b.address);
    await cluster.until(() => journal.live === 1, 120_000);
    await cluster.until(() => [a, b].every(({ cluster: each }) => each.upMembers().length === 2), 120_000);
    assertEquals(a.cluster.leader()?.address, b.cluster.leader()?.address);
    await cluster.pass(5_000);
    assertEquals(journal.live, 1);
  });
});
