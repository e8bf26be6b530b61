/**
 * Rule 1's second inequality, M ≥ (G + stopBound) · (1 + 2 · drift), at its edge: all that can go against it does. The last
 * ping of the old host is acknowledged right before every survivor sees it as down, its clock is as slow and theirs as fast
 * as may be, and its last handler begins right before its gate closes and takes all of stopBound.
 */
import { assert, assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { Actor } from '../../src/actor/actor.ts';
import type { Assembly } from '../../src/facade/assembly.ts';
import { SingletonKey } from '../../src/singleton/key.ts';
import { World } from '../../src/testkit/sim_world.ts';
import { codes } from '../../src/wire/codes.ts';
import { assembleIn } from './simulated_assembly.ts';

const key = SingletonKey.of<'tick'>('ticker');
const addresses = ['10.0.0.1:2550', '10.0.0.2:2550', '10.0.0.3:2550'];
const driftBound = 0.02;
const window = { stableAfterMs: 1_000, gateWindowMs: 400 };
const [stopBoundMs, removalMarginMs] = [200, 624];
const timing = { ...window, stopBoundMs, removalMarginMs, driftBound };

interface Handled {
  readonly host: string;
  readonly epoch: number;
  readonly from: number;
  readonly to: number;
}

interface Scene {
  /** Clocks of two nodes differ by up to twice this. */
  readonly driftPpm?: number;
  /** The message that is the last one before the gate closes takes so long; all others take no time. */
  readonly long?: { readonly index: number; readonly ms: number };
}

interface Outcome {
  readonly handled: readonly Handled[];
  /** Of the old host's last message: where it stands among all. */
  readonly lastIndex: number;
  readonly lastOld: Handled;
  readonly firstNew: Handled;
}

const ideal = { baseMs: [0.05, 0.05], jitterMs: 0, lossRate: 0, retransmitMs: 200 } as const;

async function run(seed: number, { driftPpm = driftBound / 2 * 1e6, long }: Scene): Promise<Outcome> {
  const world = new World({ seed, driftPpm, timerLatenessMs: 0, network: { delays: ideal }, drain: 'always' });
  const handled: Handled[] = [];
  const near = { edge: false };
  const nodes: Assembly[] = [];
  for (const [index, address] of addresses.entries()) {
    const name = 'abc'[index]!;
    class Ticker extends Actor<'tick'> {
      override preStart(): void {
        this.context.timers.startSingle('tick', 'tick', 1);
      }
      override async onReceive(): Promise<void> {
        this.context.timers.startSingle('tick', 'tick', near.edge ? 1 : 25);
        const mine = handled.length;
        const from = world.now;
        const say = () => void (handled[mine] = { host: name, epoch: this.context.epoch, from, to: world.now });
        say();
        if (mine !== long?.index) return;
        const { timers } = this.context.system.environment;
        await new Promise<void>((done) => void timers.set(long.ms, done));
        say();
      }
    }
    world.addHost(name, address, async (process) => {
      const node = await assembleIn(process, { ...timing, seeds: addresses.slice(0, 1) });
      node.registry.start(key, Ticker);
      node.node.start();
      nodes.push(node);
    });
  }
  for (const host of world.hosts) {
    world.start(host);
    const up = () => nodes.length === host.index + 1 && nodes.at(-1)?.node.view().self.status === 'up';
    assert(await world.advanceUntil(up, 10_000));
  }
  const [a, b, c] = nodes as [Assembly, Assembly, Assembly];
  await world.advance(500);
  near.edge = true;
  await downAtTheWorstTime(world, a, b, c);
  assert(await world.advanceUntil(() => handled.at(-1)?.host === 'b', 5_000));
  await world.advance(400);
  const old = handled.filter(({ host }) => host === 'a');
  const lastIndex = handled.lastIndexOf(old.at(-1)!);
  const firstNew = handled.find(({ host }) => host === 'b')!;
  return { handled, lastIndex, lastOld: old.at(-1)!, firstNew };
}

/** `c` has just acknowledged a ping of `a` when it hears from `b` that `a` is down; `a` hears nothing more of anybody. */
async function downAtTheWorstTime(world: World, a: Assembly, b: Assembly, c: Assembly): Promise<void> {
  world.partition(['a'], ['b']);
  let acknowledged = false;
  const send = c.node.peers.sendSystem.bind(c.node.peers);
  c.node.peers.sendSystem = (to, envelope) => {
    if (envelope[0] === codes.gatePong && to === addresses[0]) acknowledged = true;
    send(to, envelope);
  };
  assert(await world.advanceUntil(() => acknowledged, 200));
  await world.advance(0.1);
  assertEquals(b.node.down(addresses[0]!), 'downed');
  const seen = () => c.node.view().members.some(({ uid, status }) => uid === a.node.uid && status === 'down');
  assert(await world.advanceUntil(seen, 10));
  world.partition(['a'], ['c']);
}

/** By how much the first message of the new host comes after the end of the old one's last, which takes `ms`. */
async function spareMs(seed: number, ms: number, driftPpm?: number): Promise<number> {
  const scene = driftPpm === undefined ? {} : { driftPpm };
  const { lastIndex } = await run(seed, scene);
  const { lastOld, firstNew, handled } = await run(seed, { ...scene, long: { index: lastIndex, ms } });
  assert(lastOld.to - lastOld.from > 0.8 * ms, 'the last handler takes its time');
  // Whatever is exceeded here: nothing begins on the old host any more, and the new one can be told apart.
  assertEquals(handled.lastIndexOf(lastOld), lastIndex);
  assert(handled.slice(handled.indexOf(firstNew)).every(({ host }) => host === 'b'));
  assert(firstNew.epoch > lastOld.epoch);
  return firstNew.from - lastOld.to;
}

async function each(ms: number, driftPpm?: number): Promise<number[]> {
  const found: number[] = [];
  for (const seed of [1, 2, 3, 4]) found.push(await spareMs(seed, ms, driftPpm));
  return found;
}

describe('rules 1 and 2: the margin at its edge', () => {
  test('exactly at the bound it holds, with little to spare', async () => {
    const smallest = Math.min(...await each(stopBoundMs));
    assert(smallest > 0, `${smallest} ms`);
    assert(smallest < 30, `the edge was not reached: ${smallest} ms`);
  });

  test('a handler that takes longer than stopBound goes on beside the new host, and nothing else does', async () => {
    const found = await each(stopBoundMs + 50);
    assert(found.some((ms) => ms < 0), `not beside it: ${found}`);
    assert(Math.min(...found) >= -50, `for longer than it was late: ${found}`);
  });

  test('so does one on a host whose clock is slower than assumed', async () => {
    const found = await each(stopBoundMs, 100_000);
    assert(found.some((ms) => ms < 0), `not beside it: ${found}`);
  });
});
