import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import type { JobBody } from '../../node/job_call.ts';
import type { JobReply } from '../../node/job_messages.ts';
import { JobRunner } from '../../node/job_runner.ts';
import { limits } from '../../src/limits.ts';

const url = 'http://127.0.0.1:9000/hook';

interface Target {
  readonly body: JobBody;
  answer(status: number): void;
}

/** A runner on a virtual clock whose targets answer when the test says so. */
class World {
  now = 1_000_000;
  woken = 0;
  epoch = 7;
  readonly targets: Target[] = [];
  readonly #timers = new Map<number, { at: number; run: () => void }>();
  #next = 0;

  runner(host = '127.0.0.1:1'): JobRunner {
    return new JobRunner({
      host,
      epoch: () => this.epoch,
      wake: () => void this.woken++,
      world: {
        clock: { now: () => this.now, wall: () => this.now },
        timers: {
          set: (delayMs, run) => {
            const key = ++this.#next;
            this.#timers.set(key, { at: this.now + delayMs, run });
            return () => void this.#timers.delete(key);
          },
        },
        fetch: (_url, init) =>
          new Promise((resolve) => {
            const body = JSON.parse(init.body as string) as JobBody;
            this.targets.push({ body, answer: (status) => resolve(new Response(null, { status })) });
          }),
      },
    });
  }

  advance(ms: number): void {
    this.now += ms;
    for (const [key, timer] of this.#timers) {
      if (timer.at > this.now) continue;
      this.#timers.delete(key);
      timer.run();
    }
  }

  get timersLeft(): number {
    return this.#timers.size;
  }
}

/** Lets promises settle. */
function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}

function put(runner: JobRunner, id: string, everyMs = 100): JobReply {
  return runner.handle({ kind: 'put', job: { id, url, everyMs } });
}

describe('job runner', () => {
  test('calls the target with id, run, epoch, host and due time, and says when to wake it', async () => {
    const world = new World();
    const runner = world.runner();
    assertEquals(put(runner, 'tick').kind, 'job');
    assertEquals(runner.run(), 100);
    world.advance(103);
    assertEquals(runner.run(), 97);
    assertEquals(world.targets[0]!.body, {
      id: 'tick',
      run: 1,
      epoch: 7,
      host: '127.0.0.1:1',
      dueAt: new Date(1_000_100).toISOString(),
    });
    world.targets[0]!.answer(200);
    await settle();
    assertEquals(world.woken, 1);
    runner.run();
    const reply = runner.handle({ kind: 'get', id: 'tick' });
    assert(reply.kind === 'job');
    assertEquals([reply.job.runs, reply.job.lastStatus, reply.job.running], [1, 200, false]);
    assertEquals(world.timersLeft, 0);
  });

  test('answers that arrive together wake it once', async () => {
    const world = new World();
    const runner = world.runner();
    for (const id of ['a', 'b', 'c']) put(runner, id);
    world.advance(100);
    runner.run();
    for (const target of world.targets) target.answer(200);
    await settle();
    assertEquals(world.woken, 1);
  });

  test('a planned move: the old host waits for its call, the new one goes on with the next run', async () => {
    const world = new World();
    const old = world.runner('127.0.0.1:1');
    put(old, 'tick');
    world.advance(100);
    old.run();
    let stopped = false;
    const stopping = old.stop().then(() => stopped = true);
    await settle();
    assertEquals(stopped, false);
    world.targets[0]!.answer(204);
    await stopping;
    const state = old.state();
    assert(state !== null);

    world.epoch = 8;
    world.advance(120);
    const next = world.runner('127.0.0.1:2');
    next.restore(state);
    next.run();
    const { run, epoch, host, dueAt } = world.targets[1]!.body;
    assertEquals([run, epoch, host, dueAt], [2, 8, '127.0.0.1:2', new Date(1_000_200).toISOString()]);
    const reply = next.handle({ kind: 'get', id: 'tick' });
    assert(reply.kind === 'job');
    assertEquals([reply.job.failures, reply.job.skipped], [0, 0]);
  });

  test('a call that does not end is cut off when the scheduler moves, counted as failed and not repeated', async () => {
    const world = new World();
    const old = world.runner();
    put(old, 'tick');
    world.advance(100);
    old.run();
    const stopping = old.stop();
    await settle();
    world.advance(limits.jobDrainMs);
    await stopping;
    const next = world.runner();
    next.restore(old.state()!);
    next.run();
    assertEquals(world.targets.map((target) => target.body.run), [1, 2]);
    const reply = next.handle({ kind: 'get', id: 'tick' });
    assert(reply.kind === 'job');
    assertEquals(reply.job.failures, 1);
    assertStringIncludes(reply.job.lastError ?? '', 'moved');
  });

  test('a run that waits for a free call when the scheduler moves is made by the successor, not lost', async () => {
    const world = new World();
    const old = world.runner();
    for (let i = 0; i <= limits.jobNewPerTarget; i++) put(old, `j${i}`, 10_000);
    world.advance(10_000);
    old.run();
    const stopping = old.stop();
    for (const target of world.targets) target.answer(200);
    await stopping;
    assertEquals(world.targets.length, limits.jobNewPerTarget);
    const next = world.runner();
    next.restore(old.state()!);
    next.run();
    const { id, run, dueAt } = world.targets[limits.jobNewPerTarget]!.body;
    assertEquals([id, run, dueAt], [`j${limits.jobNewPerTarget}`, 1, new Date(1_010_000).toISOString()]);
  });

  test('an answer that came just before the stop is not lost', async () => {
    const world = new World();
    const old = world.runner();
    put(old, 'tick');
    world.advance(100);
    old.run();
    world.targets[0]!.answer(500);
    await settle();
    await old.stop();
    const next = world.runner();
    next.restore(old.state()!);
    const reply = next.handle({ kind: 'get', id: 'tick' });
    assert(reply.kind === 'job');
    assertEquals([reply.job.failures, reply.job.lastStatus], [1, 500]);
  });

  test('commands it does not know are refused with the field', () => {
    const reply = new World().runner().handle({ kind: 'explode' });
    assert(reply.kind === 'refused');
    assertEquals(reply.refusal.field, 'kind');
  });
});
