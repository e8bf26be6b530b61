/** The periodic work of a node is done together: earlier than asked for, never later, and in step with the neighbours. */
import { afterEach, describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { Pulse } from '../../src/cluster/pulse.ts';
import { fastPaths } from '../../src/fast_paths.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import type { LinkedPeers } from '../../src/transport/peers.ts';
import { allUp, Harness, statuses } from './support/node_harness.ts';

/** Works of a pulse that come back every so many milliseconds, with when they ran. */
function pulseOf(...works: readonly [everyMs: number, early: number][]) {
  const environment = new ManualEnvironment();
  let wakes = 0;
  const timers = {
    set: (delayMs: number, run: () => void) =>
      environment.timers.set(delayMs, () => {
        wakes += 1;
        run();
      }),
  };
  const pulse = new Pulse({ ...environment, clock: environment.clock, timers, turns: environment.turns });
  const ran: number[][] = works.map(() => []);
  const made = works.map(([everyMs, early], n) => {
    const work = pulse.work(early, () => {
      ran[n]!.push(environment.clock.now());
      work.at(environment.clock.now() + everyMs);
    });
    work.at(everyMs);
    return work;
  });
  return { environment, pulse, ran, made, wakes: () => wakes };
}

describe('the pulse of a node', () => {
  afterEach(() => {
    fastPaths.pulse = true;
  });

  test('what may come early comes with what is due; one wake-up for both', () => {
    const { environment, ran, wakes } = pulseOf([300, 0], [500, 0.5]);
    environment.advance(1_200);
    assertEquals(ran, [[300, 600, 900, 1_200], [300, 600, 900, 1_200]]);
    assertEquals(wakes(), 4);
  });

  test('nothing comes later than asked for, nor earlier than it may', () => {
    const { environment, pulse, ran } = pulseOf([500, 0.5]);
    environment.advance(249);
    pulse.beat();
    assertEquals(ran, [[]]);
    environment.advance(1);
    pulse.beat();
    pulse.beat();
    assertEquals(ran, [[250]]);
    environment.advance(500);
    assertEquals(ran, [[250, 750]]);
  });

  test('a time may be moved both ways, and taken back', () => {
    const { environment, ran, made: [work] } = pulseOf([500, 0]);
    work!.at(900);
    environment.advance(899);
    assertEquals(ran, [[]]);
    work!.at(2_000);
    work!.at(1_000);
    environment.advance(101);
    assertEquals(ran, [[1_000]]);
    work!.cancel();
    environment.advance(5_000);
    assertEquals(ran, [[1_000]]);
    work!.at(7_000);
    work!.stop();
    work!.at(7_001);
    environment.advance(5_000);
    assertEquals(ran, [[1_000]]);
  });

  test('without it each work has its own times', () => {
    fastPaths.pulse = false;
    const { environment, pulse, ran } = pulseOf([300, 0.5], [500, 0.5]);
    environment.advance(450);
    pulse.beat();
    environment.advance(550);
    assertEquals(ran, [[300, 600, 900], [500, 1_000]]);
  });
});

describe('nodes in step', () => {
  afterEach(() => {
    fastPaths.pulse = true;
  });

  /** When each of three nodes sends a frame in two quiet seconds, in whole milliseconds. */
  async function sendsAtRest(): Promise<{ readonly frames: number; readonly moments: number }> {
    const harness = new Harness();
    for (const [n, address] of ['a:1', 'b:1', 'c:1'].entries()) {
      await harness.add(address, n === 0 ? [] : ['a:1']);
      // Out of step with those before.
      await harness.environment.elapse(1_130);
    }
    await harness.environment.elapse(3_000);
    const sent = () => harness.nodes.map(({ node }) => (node.peers as LinkedPeers).counters.out.system.frames);
    const before = sent();
    let moments = 0;
    for (let ms = 0, last = before; ms < 2_000; ms += 1) {
      await harness.environment.elapse(1);
      const now = sent();
      moments += now.filter((frames, n) => frames !== last[n]).length;
      last = now;
    }
    return { frames: sent().reduce((sum, frames, n) => sum + frames - before[n]!, 0), moments };
  }

  test('three nodes at rest send at fewer moments, and fewer frames', async () => {
    fastPaths.pulse = false;
    const apart = await sendsAtRest();
    fastPaths.pulse = true;
    const together = await sendsAtRest();
    assert(together.frames < apart.frames, `${together.frames} frames, ${apart.frames} before`);
    assert(together.moments < 0.6 * apart.moments, `${together.moments} moments, ${apart.moments} before`);
  });

  test('a leader whose seeds are all members wakes up for heartbeats alone', async () => {
    const harness = new Harness(0);
    const { timers } = harness.environment;
    const { set } = timers;
    let rung = 0;
    timers.set = (delayMs, run) =>
      set(delayMs, () => {
        rung += 1;
        run();
      });
    const seeds = ['a:1', 'b:1'];
    await harness.add('a:1', seeds, { selfElection: 'immediate' });
    await harness.add('b:1', seeds);
    await harness.until(() => harness.nodes.every((one) => allUp(one) && statuses(one).length === 2), 20_000);
    await harness.environment.elapse(6_000);
    rung = 0;
    await harness.environment.elapse(10_000);
    // The one that is first wakes the other with its beat.
    assertEquals(rung, 20);
  });
});
