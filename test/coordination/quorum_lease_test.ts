import { describe, test } from 'node:test';
import { assert, assertEquals, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { type ArbiterNode, QuorumArbiter } from '../../src/coordination/quorum_arbiter.ts';
import { QuorumLease, QuorumLeaseStore } from '../../src/coordination/quorum_lease.ts';
import type { Envelope } from '../../src/coordination/quorum_messages.ts';
import { resolveLease } from '../../src/coordination/lease.ts';
import { StoreLease } from '../../src/coordination/store_lease.ts';
import { codes } from '../../src/wire/codes.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { leaseContract } from '../contract/lease_contract.ts';
import { FaultyStore, VirtualBench } from './virtual_bench.ts';

const voters = ['v0:1', 'v1:1', 'v2:1'];
const ttlMs = 3_000;

class Net {
  readonly environment: ManualEnvironment;
  readonly nodes = new Map<
    string,
    { node: ArbiterNode; handlers: Map<number, (peer: any, envelope: Envelope) => void> }
  >();
  readonly arbiters = new Map<string, QuorumArbiter>();
  readonly down = new Set<string>();
  #boots = 0;

  constructor(environment: ManualEnvironment) {
    this.environment = environment;
  }

  boot(address: string): QuorumArbiter {
    const handlers = new Map<number, (peer: any, envelope: Envelope) => void>();
    const uid = `u${this.#boots += 1}`;
    const node: ArbiterNode = {
      environment: this.environment,
      address,
      uid,
      onMessage: (code, handler) => {
        handlers.set(code, handler);
        return () => void handlers.delete(code);
      },
      sendSystem: (to, envelope) => {
        this.environment.timers.set(1, () => {
          if (!this.down.has(address) && !this.down.has(to)) {
            this.nodes.get(to)?.handlers.get(envelope[0])?.({ address, uid }, envelope);
          }
        });
      },
    };
    this.nodes.set(address, { node, handlers });
    const arbiter = new QuorumArbiter(node, { voters, maxTtlMs: ttlMs });
    this.arbiters.set(address, arbiter);
    return arbiter;
  }
}

class QuorumBench extends VirtualBench {
  readonly net: Net;
  #clients = 0;

  constructor() {
    super(ttlMs, () => ({} as never));
    this.net = new Net(this.environment);
  }

  /** Each owner of the suite is a node of its own. */
  override open(name: string, owner: string): StoreLease {
    const arbiter = this.net.boot(`${owner.replace('#', '-')}-${this.#clients += 1}:1`);
    const faults = new FaultyStore(new QuorumLeaseStore(arbiter));
    this.#faulty.set(owner, faults);
    return new StoreLease(faults, resolveLease('Lease', { name, owner: arbiter.owner, ttlMs }, 10), this.environment);
  }
  readonly #faulty = new Map<string, FaultyStore>();
  override breakFor(owner: string | undefined): void {
    for (const [name, { down }] of [...this.#faulty].map(([key]) => [key, this.net] as const)) {
      for (const address of this.net.nodes.keys()) {
        if (!address.startsWith(name.replace('#', '-'))) continue;
        if (name === owner) down.add(address);
        else down.delete(address);
      }
    }
  }
  override muteFor(owner: string | undefined): void {
    for (const faults of this.#faulty.values()) {
      const [{ owner: id } = { owner: '' }] = [...this.net.arbiters.values()].filter((arbiter) =>
        arbiter.owner.startsWith((owner ?? '-').replace('#', '-'))
      );
      faults.muted = owner === undefined ? undefined : id;
    }
  }
}

leaseContract({
  title: 'quorum, three voters',
  bench: async () => {
    const bench = new QuorumBench();
    for (const address of voters) bench.net.boot(address);
    await bench.elapse(ttlMs * 1.1);
    return bench;
  },
});

describe('the quorum lease', () => {
  async function scene() {
    const environment = new ManualEnvironment();
    const net = new Net(environment);
    const [a, b] = voters.map((address) => net.boot(address));
    await environment.elapse(ttlMs + 100);
    const lease = new QuorumLease(a!, { name: 'x', ttlMs });
    const other = new QuorumLease(b!, { name: 'x', ttlMs });
    const settle = async <T>(promise: Promise<T>, ms = 100) => {
      await environment.elapse(ms);
      return promise;
    };
    return { environment, net, lease, other, settle };
  }

  test('a total start grants nothing for the longest term, then tokens go on from the wall clock', async () => {
    const environment = new ManualEnvironment();
    const net = new Net(environment);
    const [a] = voters.map((address) => net.boot(address));
    const lease = new QuorumLease(a!, { name: 'x', ttlMs });
    const early = lease.acquireWithToken().then(() => 'granted', (error) => String(error));
    await environment.elapse(ttlMs / 2);
    assert((await early).includes('does not vote yet'));
    await environment.elapse(ttlMs);
    const grant = lease.acquireWithToken();
    await environment.elapse(10);
    const won = await grant;
    assert(won && won.token >= 1_700_000_000_000);
  });

  test('one voter of three may be gone, two may not', async () => {
    const { environment, net, lease, settle } = await scene();
    net.down.add('v2:1');
    assert(await settle(lease.acquire()));
    await environment.elapse(3 * ttlMs);
    assert(lease.checkAlive());
    net.down.add('v1:1');
    await environment.elapse(ttlMs * 1.1);
    assert(!lease.checkAlive());
  });

  test('rule 17: a voter that restarts does not help a rival, and learns the tokens before it votes', async () => {
    const { environment, net, lease, other, settle } = await scene();
    const first = await settle(lease.acquireWithToken());
    // The holder is cut off right after, and a voter that had voted for it comes back without memory.
    net.down.add('v0:1');
    net.arbiters.get('v2:1')!.close();
    net.boot('v2:1');
    for (let term = 0; term < 5; term += 1) {
      assertEquals(await settle(other.acquire().catch(() => false), ttlMs), false);
    }
    assert(!lease.checkAlive());
    net.down.delete('v0:1');
    await environment.elapse(1_000);
    const second = await settle(other.acquireWithToken());
    assert(first && second && second.token > first.token, 'with the third voter back it can be had');
  });

  test('voters restarted one after the other, a term apart, cost nothing; at once, the lease, until they vote again', async () => {
    const { environment, net, lease, other, settle } = await scene();
    const first = await settle(lease.acquireWithToken());
    assert(first);
    const restart = (address: string) => {
      net.arbiters.get(address)!.close();
      net.boot(address);
    };
    for (const address of ['v1:1', 'v2:1', 'v1:1', 'v2:1']) {
      restart(address);
      for (let step = 0; step < 12; step += 1) {
        await environment.elapse(ttlMs / 10);
        assert(lease.checkAlive() && lease.token === first.token);
      }
    }
    for (const address of ['v1:1', 'v2:1']) restart(address);
    await environment.elapse(ttlMs);
    assertEquals([lease.checkAlive(), await settle(other.acquire().catch(() => false))], [false, false]);
    await environment.elapse(ttlMs);
    const again = await settle(lease.acquireWithToken());
    assert(again && again.token > first.token);
  });

  test('rule 17: a token that one voter sealed before its restart and another one after it is not forgotten when that one restarts', async () => {
    const environment = new ManualEnvironment();
    const net = new Net(environment);
    for (const address of voters) net.boot(address);
    await environment.elapse(2 * ttlMs);
    const ask = (address: string, kind: 'grant' | 'seal', token = 0) =>
      net.arbiters.get(address)!.voter!.answer(
        'c#1',
        { kind, name: 'x', tenure: 1, ttlMs, token },
        environment.clock.now(),
      ).kind;
    const token = environment.clock.wall() + 1_000_000;
    assertEquals([ask('v0:1', 'grant'), ask('v1:1', 'grant'), ask('v0:1', 'seal', token)], Array(3).fill('granted'));
    net.boot('v0:1');
    await environment.elapse(700);
    assert(net.arbiters.get('v0:1')!.voter!.knows);
    assertEquals(ask('v1:1', 'seal', token), 'granted', 'the seal that came late makes the majority');
    await environment.elapse(700);
    net.boot('v1:1');
    await environment.elapse(700);
    for (const address of ['v0:1', 'v1:1']) {
      const learnt = net.arbiters.get(address)!.voter!.answer('c#2', { kind: 'learn' }, environment.clock.now());
      assert(learnt.kind === 'learnt' && learnt.floor >= token, address);
    }
  });

  test('R78: the token before is told when nothing was forgotten', async () => {
    const { lease, other, settle } = await scene();
    const first = await settle(lease.acquireWithToken());
    await settle(lease.release());
    const second = await settle(other.acquireWithToken());
    assert(first && second && second.token > first.token);
    assertEquals(second.previous, first.token);
  });

  test('the answers of others, malformed messages and strangers change nothing', async () => {
    const { environment, net, lease, settle } = await scene();
    assert(await settle(lease.acquire()));
    const { handlers } = net.nodes.get('v0:1')!;
    const arbiter = net.arbiters.get('v0:1')!;
    for (const handler of handlers.values()) {
      handler({ address: 'z:1', uid: 'z' }, [codes.leaseAsk, 'what'] as unknown as Envelope);
    }
    assertEquals(arbiter.malformed, 2);
    handlers.get(codes.leaseAnswer)!({ address: 'z:1', uid: 'z' }, [codes.leaseAnswer, 1, 4, true, 2 ** 52]);
    handlers.get(codes.leaseAnswer)!({ address: 'v1:1', uid: 'z' }, [codes.leaseAnswer, 999, 0, 1, 1, 1]);
    await environment.elapse(ttlMs);
    assert(lease.checkAlive() && lease.token < 2 ** 52);
  });

  test('options: voters, the longest term, and a factory that needs an arbiter', () => {
    const environment = new ManualEnvironment();
    const { node } = (() => {
      const net = new Net(environment);
      net.boot('v0:1');
      return net.nodes.get('v0:1')!;
    })();
    assertThrows(() => new QuorumArbiter(node, { voters: [] }), OptionsError, 'voters');
    assertThrows(() => new QuorumArbiter(node, { voters, maxTtlMs: 1 }), OptionsError, 'maxTtlMs');
    const arbiter = new QuorumArbiter(node, { voters, maxTtlMs: 1_000 });
    assertThrows(() => new QuorumLease(arbiter, { name: 'x', ttlMs: 1_001 }), OptionsError, 'ttlMs');
    const factory = QuorumLease.factory({ ttlMs: 1_000 });
    const context = { name: 's', owner: 'o', environment, driftBound: 0 };
    assertThrows(() => factory(context), OptionsError, 'ClusterOptions.leaseVoters');
    assertEquals(factory({ ...context, arbiter }).owner, arbiter.owner);
    assertThrows(() => QuorumLease.factory({}), OptionsError, 'ttlMs');
  });
});
