import { assert, assertEquals, assertGreaterOrEqual, assertLess, assertRejects } from '@std/assert';
import { describe, test } from 'node:test';
import { Prng } from '../../src/testkit/prng.ts';
import type { SimProcess } from '../../src/testkit/sim_process.ts';
import { SimulationError, World } from '../../src/testkit/sim_world.ts';

async function oneProcess(world = new World({ seed: 1, driftPpm: 0 })): Promise<[World, SimProcess]> {
  const host = world.addHost('n1', '10.0.0.1:1', () => {});
  const process = world.start(host);
  await world.advance(1);
  if (process === undefined) throw new Error('not started');
  return [world, process];
}

describe('Prng', () => {
  test('gives the same numbers on every runtime', () => {
    const random = new Prng('singlet');
    assertEquals([random.uint32(), random.uint32(), random.uint32()], [1066815335, 3234378161, 4179386021]);
  });

  test('streams with different seeds differ, equal seeds agree', () => {
    assertEquals(new Prng('a').next(), new Prng('a').next());
    assert(new Prng('a').next() !== new Prng('b').next());
  });

  test('integer covers its whole range and nothing else', () => {
    const random = new Prng('range');
    const seen = new Set(Array.from({ length: 200 }, () => random.integer(3, 6)));
    assertEquals([...seen].sort(), [3, 4, 5, 6]);
  });
});

describe('World', () => {
  test('runs events by time, then by order of insertion', async () => {
    const world = new World({ seed: 1 });
    const ran: string[] = [];
    world.at(5, () => ran.push('c'));
    world.at(1, () => ran.push('a'));
    world.at(5, () => ran.push('d'));
    world.at(3, () => ran.push('b'));
    await world.advance(10);
    assertEquals(ran.join(''), 'abcd');
    assertEquals(world.now, 10);
  });

  test('a timer never fires before its deadline on the clock of its process, and a cancelled one never', async () => {
    const [world, process] = await oneProcess();
    let firedAt = 0;
    let cancelled = false;
    const deadline = process.clock.now() + 100;
    process.timers.set(100, () => firedAt = process.clock.now());
    process.timers.set(50, () => cancelled = true)();
    await world.advance(200);
    assertGreaterOrEqual(firedAt, deadline);
    assertLess(firedAt, deadline + 2);
    assertEquals(cancelled, false);
  });

  test('clocks of two processes drift apart by no more than the bound', async () => {
    const world = new World({ seed: 4, driftPpm: 200 });
    const hosts = [1, 2].map((n) => world.addHost(`n${n}`, `10.0.0.${n}:1`, () => {}));
    const [a, b] = hosts.map((host) => world.start(host));
    if (a === undefined || b === undefined) throw new Error('not started');
    const before = a.clock.now() - b.clock.now();
    await world.advance(1_000_000);
    const drift = Math.abs(a.clock.now() - b.clock.now() - before);
    assert(drift > 0.1 && drift <= 400, `drift ${drift}`);
  });

  test('a paused process runs nothing, its clock goes on, and what was due runs on waking', async () => {
    const [world, process] = await oneProcess();
    const ran: string[] = [];
    process.timers.set(10, () => ran.push(`timer ${Math.round(process.clock.now() - start)}`));
    const start = process.clock.now();
    world.pause('n1', { forMs: 5_000 });
    await world.advance(4_000);
    assertEquals(ran, []);
    await world.advance(2_000);
    assertEquals(ran, ['timer 5000']);
  });

  test('on a machine that sleeps the monotonic clock and its timers stand still, wall time goes on', async () => {
    const world = new World({ seed: 4, driftPpm: 0, timerLatenessMs: 0 });
    const fired: number[] = [];
    world.addHost('a', 'a:1', (process) => {
      for (const ms of [500, 5_000]) process.timers.set(ms, () => void fired.push(Math.round(world.now)));
      const cancel = process.timers.set(600, () => void fired.push(-1));
      process.timers.set(400, () => world.pause('a', { forMs: 1_000, clockStops: true }));
      world.at(1_450, () => cancel());
    });
    const process = world.start(world.host('a'));
    await world.runUntil(399);
    const [mono, wall] = [process?.clock.now() ?? 0, process?.clock.wall() ?? 0];
    await world.runUntil(1_399);
    assertEquals(Math.round((process?.clock.now() ?? 0) - mono), 1);
    assertEquals((process?.clock.wall() ?? 0) - wall, 1_000);
    await world.runUntil(10_000);
    assertEquals(fired, [1_500, 6_000]);
  });

  test('after waking, sockets or timers may come first', async () => {
    for (const order of ['timers-first', 'io-first', 'due'] as const) {
      const [world, process] = await oneProcess();
      const ran: string[] = [];
      world.pause('n1');
      world.schedule(world.now + 1, process, 'io', () => ran.push('io'));
      world.schedule(world.now + 2, process, 'timer', () => ran.push('timer'));
      world.schedule(world.now + 3, process, 'io', () => ran.push('io'));
      await world.advance(100);
      world.resume('n1', order);
      await world.advance(1);
      const expected = { 'timers-first': 'timer io io', 'io-first': 'io io timer', due: 'io timer io' };
      assertEquals(ran.join(' '), expected[order]);
    }
  });

  test('nothing of a crashed process runs any more; a restart is a new incarnation', async () => {
    const [world, process] = await oneProcess();
    let ran = false;
    process.timers.set(10, () => ran = true);
    world.crash('n1');
    await world.advance(100);
    assertEquals(ran, false);
    assertEquals(process.alive, false);
    assertEquals(world.restart('n1')?.incarnation, 2);
  });

  test('promise reactions of tracked work run before the next event', async () => {
    const [world, process] = await oneProcess();
    const ran: string[] = [];
    const deep = async (n: number): Promise<void> => n > 0 ? await deep(n - 1) : undefined;
    process.timers.set(1, () => {
      process.track(deep(50).then(() => void ran.push('promise')));
    });
    world.at(world.now + 2.5, () => ran.push('event'));
    await world.advance(10);
    assertEquals(ran, ['promise', 'event']);
    assertEquals(process.pendingAsync, 0);
  });

  test('an exception in a process ends the run and names the process', async () => {
    const [world, process] = await oneProcess();
    process.timers.set(1, () => {
      throw new TypeError('boom');
    });
    const error = await assertRejects(() => world.advance(10), SimulationError, 'n1');
    assertEquals((error as SimulationError).rule, 'uncaught');
  });

  test('endless turns are called a livelock only when time does not move', async () => {
    const [world, process] = await oneProcess();
    const again = () => void world.schedule(world.now, process, 'io', again);
    again();
    await assertRejects(() => world.advance(10), SimulationError, 'livelock');
  });

  test('advanceUntil stops at the step that makes its condition true', async () => {
    const [world, process] = await oneProcess();
    let done = false;
    process.timers.set(100, () => done = true);
    assertEquals(await world.advanceUntil(() => done, 1_000), true);
    assertLess(world.now, 110);
    assertEquals(await world.advanceUntil(() => false, 500), false);
  });

  test('the wall clock jumps alone', async () => {
    const [world, process] = await oneProcess();
    const wall = process.clock.wall();
    const monotonic = process.clock.now();
    world.host('n1').wallOffsetMs += 3_600_000;
    assertEquals(process.clock.wall() - wall, 3_600_000);
    assertEquals(process.clock.now(), monotonic);
  });
});
