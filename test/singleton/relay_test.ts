import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { SingletonHostedAnyway } from '../../src/singleton/events.ts';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { ManagerEvent } from '../../src/singleton/manager_state.ts';
import { MemoryCluster, type MemoryNode } from '../facade/memory_cluster.ts';
import { counterClass, Journal } from './fixtures.ts';
import { member, viewOf } from './manager_world.ts';

async function three(options: { stopMs?: number } = {}, settings = {}) {
  const journal = new Journal();
  const Counter = counterClass(journal, options);
  const cluster = new MemoryCluster();
  await cluster.grow(3, settings);
  const refs = cluster.nodes.map((node) => node.cluster.singleton.start(Counter));
  await cluster.until(() => journal.live === 1);
  await cluster.pass(300);
  const [first, second, third] = cluster.nodes as [MemoryNode, MemoryNode, MemoryNode];
  return { journal, cluster, refs, first, second, third };
}

describe('rule 9: members that cannot reach each other', () => {
  test('a planned move goes through a third one, with its state, and nothing is lost or doubled', async () => {
    const { journal, cluster, refs, first, second, third } = await three({ stopMs: 50 });
    for (let n = 0; n < 20; n += 1) refs[2]!.tell(n);
    await cluster.until(() => journal.got.length === 20);
    cluster.network.cut(first.address, second.address);
    third.cluster.singleton.move('counter', second.address);
    for (let n = 20; n < 40; n += 1) refs[2]!.tell(n);
    const at = cluster.environment.clock.now();
    await cluster.until(() => journal.lines.length === 3);
    assert(cluster.environment.clock.now() - at < 1_500, `${cluster.environment.clock.now() - at} ms`);
    assertEquals(await cluster.get(refs[2]!.ask('where')), second.address);
    assertEquals(await cluster.get(refs[2]!.ask('count')), 40);
    assertEquals([journal.got, journal.peak], [Array.from({ length: 40 }, (_, n) => n), 1]);
    assert(third.cluster.singleton.find('counter')!.relay.relayed > 0);
  });

  test('a slow stop is heard of through the third one, and nobody hosts beside it, whatever the policy', async () => {
    const { journal, cluster, refs, first, second, third } = await three({ stopMs: 9_000 }, { downing: 'manual' });
    let anyway = 0;
    second.system.eventStream.subscribe(SingletonHostedAnyway, () => anyway += 1);
    cluster.network.cut(first.address, second.address);
    third.cluster.singleton.move('counter', second.address);
    await cluster.until(() => journal.lines.length === 3, 120_000);
    assertEquals(journal.lines.map((line) => line.split(' ')[0]), ['start', 'stop', 'start']);
    assertEquals([journal.peak, anyway], [1, 0]);
    assertEquals(await cluster.get(refs[1]!.ask('where')), second.address);
  });
});

describe('rule 9, in the manager', () => {
  const started = new Map([['x', { generation: 1, role: undefined }]]);
  const one = (uid: string, upNumber: number, reachable = true) => member(uid, { upNumber, started, reachable });

  /** `b` becomes host: `a`, who leaves, is silent and out of reach, `c` has answered. */
  function attempt() {
    const view = viewOf([{ ...one('a', 1, false), status: 'leaving' }, one('b', 2), one('c', 3)], 'b');
    let state = initialManager('x', 'b', 'b:1');
    let now = 0;
    const feed = (event: ManagerEvent) => {
      const step = manage(state, event, view, now, 0);
      state = step.state;
      return step.effects;
    };
    feed({ kind: 'start', record: { generation: 1, role: undefined }, config: defaultManagerConfig });
    assertEquals(state.phase.kind, 'becoming-host');
    const verdict = { kind: 'not-hosting' } as const;
    feed({ kind: 'answer', uid: 'c', nonce: 'b/1', epochSeen: 0, epochStarted: 0, verdict });
    const later = (ms: number, event: ManagerEvent) => {
      now += ms;
      return feed(event);
    };
    return { later, phase: () => state.phase.kind };
  }

  test('those that gave no answer are asked again directly and through one that did', () => {
    const { later } = attempt();
    const requests = later(250, { kind: 'timer', timer: 'resend' }).filter((effect) => effect.kind === 'request');
    assertEquals(requests.map(({ to, via }) => [to.uid, via?.uid]), [['a', 'c']]);
  });

  test('one that another member can reach is slow, not silent; once nobody has for as long, it is', () => {
    const { later, phase } = attempt();
    later(6_000, { kind: 'reached', uid: 'a' });
    later(4_000, { kind: 'timer', timer: 'hand-over-timeout' });
    assertEquals(phase(), 'becoming-host');
    later(6_001, { kind: 'view' });
    assertEquals(phase(), 'hosting');
    const silent = attempt();
    silent.later(10_000, { kind: 'timer', timer: 'hand-over-timeout' });
    assertEquals(silent.phase(), 'hosting');
  });
});
