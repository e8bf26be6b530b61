/** What membership does to actors, singletons and probes while nodes join, restart and are cut off: whole nodes in a world. */
import { assert, assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { Actor } from '../../src/actor/actor.ts';
import type { ActorRef } from '../../src/actor/ref.ts';
import type { Terminated } from '../../src/actor/watch.ts';
import type { ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { type LeaseFactory, resolveLease } from '../../src/coordination/lease.ts';
import { MemoryLeaseStore } from '../../src/coordination/memory_lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import type { Assembly } from '../../src/facade/assembly.ts';
import { membershipProgram } from '../../src/testkit/membership_program.ts';
import { formatReport } from '../../src/testkit/report.ts';
import type { Fault } from '../../src/testkit/fault.ts';
import { simulate } from '../../src/testkit/simulate.ts';
import { World } from '../../src/testkit/sim_world.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { codes } from '../../src/wire/codes.ts';
import { Journal } from './fixtures.ts';
import { assembleIn } from './simulated_assembly.ts';

const addressOf = (name: string): string => `10.0.0.${name.slice(1)}:2550`;

/** Hosts n1, n2, … whose running node, if any, is found by name. */
class Nodes {
  readonly world = new World({ seed: 11, drain: 'always' });
  readonly now = new Map<string, Assembly>();

  constructor(
    names: readonly string[],
    settings: ClusterSettings | ((name: string) => ClusterSettings),
    then: (node: Assembly) => void = () => {},
  ) {
    for (const name of names) {
      this.world.addHost(name, addressOf(name), async (process) => {
        process.onExit(() => void this.now.delete(name));
        const node = await assembleIn(process, typeof settings === 'function' ? settings(name) : settings);
        this.now.set(name, node);
        then(node);
        node.node.start();
      });
    }
  }

  start(...names: string[]): void {
    for (const name of names) this.world.start(this.world.host(name));
  }

  get(name: string): Assembly {
    return this.now.get(name)!;
  }

  /** All of these see all of these, and nobody else. */
  up(...names: string[]): boolean {
    return names.every((name) => {
      const view = this.now.get(name)?.node.view();
      return view?.members.length === names.length &&
        view.members.every((one) => one.status === 'up' && one.reachable) &&
        names.every((other) => view.members.some(({ uid }) => uid === this.now.get(other)?.node.uid));
    });
  }

  async until(condition: () => boolean, withinMs: number): Promise<void> {
    assert(await this.world.advanceUntil(condition, withinMs), `not within ${withinMs} ms: ${condition}`);
  }
}

function livesIn(journal: Journal) {
  return class Lives extends Actor<unknown> {
    static readonly singleton: SingletonKey<unknown> = SingletonKey.of('lives');
    override preStart(): void {
      journal.start('');
    }
    override postStop(): void {
      journal.stop('');
    }
    override onReceive(): void {}
  };
}

const three = ['n1', 'n2', 'n3'] as const;
const seeds = three.map(addressOf);

describe('membership under actors and singletons', () => {
  test('R103: joining members are visible, and never host', async () => {
    const journal = new Journal();
    const Lives = livesIn(journal);
    const nodes = new Nodes(three, { seeds, minMembers: 3 }, ({ registry }) => void registry.start(Lives));
    nodes.start('n1', 'n2');
    const joining = () => [...nodes.now.values()].every(({ node }) => node.view().members.length === 2);
    await nodes.until(() => nodes.now.size === 2 && joining(), 10_000);
    for (let second = 0; second < 5; second++) {
      await nodes.world.advance(1_000);
      const statuses = [...nodes.now.values()].flatMap(({ node }) => node.view().members.map(({ status }) => status));
      assertEquals([statuses, journal.lines], [['joining', 'joining', 'joining', 'joining'], []]);
    }
    nodes.start('n3');
    await nodes.until(() => nodes.up(...three) && journal.live === 1, 10_000);
    assertEquals(journal.peak, 1);
  });

  test('P45: a node that is watched restarts at its port: one notice, and all are up under the new uid', async () => {
    const notices: Terminated[] = [];
    class Watcher extends Actor<{ readonly ref: ActorRef<unknown> }> {
      override onReceive({ ref }: { readonly ref: ActorRef<unknown> }): void {
        this.context.watch(ref);
      }
      override onTerminated(notice: Terminated): void {
        notices.push(notice);
      }
    }
    class Watched extends Actor<unknown> {
      override onReceive(): void {}
    }
    const nodes = new Nodes(three, { seeds });
    nodes.start(...three);
    await nodes.until(() => nodes.up(...three), 10_000);
    const before = nodes.get('n2').node.uid;
    const { path, incarnation } = nodes.get('n2').system.spawn(Watched, 'watched');
    const ref = nodes.get('n1').remoting.refTo({ address: addressOf('n2'), uid: before, localPath: path, incarnation });
    nodes.get('n1').system.spawn(Watcher, 'watcher').tell({ ref });
    await nodes.world.advance(1_000);
    nodes.world.crash('n2', { restartAfterMs: 400 });
    await nodes.until(() => nodes.up(...three), 60_000);
    assert(nodes.get('n2').node.uid !== before);
    await nodes.world.advance(5_000);
    assertEquals(notices.map((notice) => notice.ref.equals(ref)), [true]);
  });

  test('FB-066: a second cluster that cannot see the first does not host while that one has the lease', async () => {
    const journal = new Journal();
    const Lives = livesIn(journal);
    const others = ['n4', 'n5', 'n6'];
    const nodes: Nodes = new Nodes([...three, ...others], (name) => {
      return { seeds: others.includes(name) ? others.map(addressOf) : seeds };
    }, ({ registry, system: { environment } }) => {
      const lease: LeaseFactory = ({ name, owner }) =>
        new StoreLease(store, resolveLease('Lease', { name, owner, ttlMs: 3_000 }, 10), environment);
      registry.start(Lives, { lease, acquireRetryIntervalMs: 500 });
    });
    const store = new MemoryLeaseStore({ now: () => nodes.world.now, wall: () => nodes.world.now });
    nodes.world.partition([...three], others);
    nodes.start(...three);
    await nodes.until(() => nodes.up(...three) && journal.live === 1, 10_000);
    nodes.start(...others);
    await nodes.until(() => nodes.up(...others), 10_000);
    await nodes.world.advance(10_000);
    assertEquals([journal.live, journal.peak], [1, 1]);
    for (const name of three) nodes.world.crash(name);
    await nodes.until(() => journal.lines.length === 2, 6_000);
    assertEquals(journal.lines, ['start ', 'start ']);
  });
});

describe('clocks, links and probes', () => {
  test('FB-069: wall clocks minutes apart change no decision, whenever a cut ends', async () => {
    const clocks: Fault[] = [
      { kind: 'clock', at: 100, node: 'n2', jumpMs: -180_000 },
      { kind: 'clock', at: 100, node: 'n3', jumpMs: 240_000 },
    ];
    // Around the detection, and around the decision.
    for (const forMs of [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_600, 8_600]) {
      const hashes: string[] = [];
      for (const skewed of [[], clocks]) {
        const seen: string[] = [];
        const cut: Fault = {
          kind: 'cut',
          at: 12_000,
          until: 12_000 + forMs,
          from: ['n1'],
          to: ['n2', 'n3'],
          oneWay: false,
          skewMs: 0,
          heal: 'deliver',
        };
        const result = await simulate({
          seed: 5,
          nodes: 3,
          profile: 'partition',
          until: 25_000,
          faults: [...skewed, cut],
          program: membershipProgram,
          onTrace: ({ node, kind, detail }) => {
            if (/member|leader|reach|self|ended/.test(kind)) {
              seen.push(`${node} ${kind} ${typeof detail === 'string' ? detail : detail()}`);
            }
          },
        });
        assertEquals(result.failure, undefined, formatReport(result));
        hashes.push(seen.join('\n'));
      }
      assertEquals(hashes[0], hashes[1], `a cut of ${forMs} ms`);
      assert(hashes[0] !== '');
    }
  });

  test('FB-071: a hundred lost links later as many heartbeats are sent as before', async () => {
    const nodes = new Nodes(three, { seeds });
    nodes.start(...three);
    await nodes.until(() => nodes.up(...three), 10_000);
    const { node } = nodes.get('n1');
    let beats = 0;
    const send = node.peers.sendSystem.bind(node.peers);
    node.peers.sendSystem = (to, envelope) => {
      if (envelope[0] === codes.heartbeat) beats++;
      send(to, envelope);
    };
    const inTenSeconds = async (): Promise<number> => {
      const before = beats;
      await nodes.world.advance(10_000);
      return beats - before;
    };
    const before = await inTenSeconds();
    for (let round = 0; round < 100; round++) {
      for (const end of nodes.world.network.connectionsBetween(nodes.world.host('n1'), nodes.world.host('n2'))) {
        nodes.world.network.resetConnection(end);
      }
      await nodes.world.advance(120);
    }
    const after = await inTenSeconds();
    assert(before >= 20 && Math.abs(after - before) <= 4, `${before}, then ${after}`);
  });

  test('FB-072: alive throughout; ready once up, whoever else is away, and not before or after', async () => {
    const nodes = new Nodes(three, { seeds, http: true });
    const probe = async (path: string): Promise<number> =>
      (await nodes.get('n1').fetch(new Request(`http://n1${path}`))).status;
    const both = async (): Promise<number[]> => [await probe('/alive'), await probe('/ready')];
    nodes.start('n1');
    for (let second = 0; second < 180; second += 10) {
      await nodes.world.advance(10_000);
      assertEquals(await both(), [200, 503]);
    }
    nodes.start('n2', 'n3');
    await nodes.until(() => nodes.up(...three), 10_000);
    assertEquals(await both(), [200, 200]);
    nodes.world.partition(['n1'], ['n3']);
    await nodes.world.advance(2_500);
    assertEquals(await both(), [200, 200], 'another one away is no reason');
    nodes.world.heal();
    await nodes.until(() => nodes.up(...three), 10_000);
    nodes.world.partition(['n1'], ['n2', 'n3']);
    await nodes.until(() => nodes.get('n1').node.ended() !== undefined, 12_000);
    assertEquals(await both(), [200, 503]);
  });
});
