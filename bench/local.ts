/** Within one process: tell, ask and spawn, beside a queue and a call. */
import { Actor, ActorSystem } from '../src/mod.ts';
import { check, emit, now, repeat, type Row } from './measure.ts';

const runs = 5;
const million = 1_000_000;

class Counter extends Actor<number> {
  static count = 0;
  static expected = 0;
  static reached = (): void => {};
  override onReceive(_message: number): void {
    Counter.count += 1;
    if (Counter.count === Counter.expected) Counter.reached();
  }
}

class Echo extends Actor<number> {
  override onReceive(message: number): void {
    this.context.sender.tell(message);
  }
}

const system = ActorSystem.create('bench', { logLevel: 'error' });
const counter = system.spawn(Counter, 'counter');
const echo = system.spawn(Echo, 'echo');
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));
/** Resolves when so many messages have been handled. */
const quiet = (expected: number): Promise<void> => {
  if (Counter.count >= expected) return Promise.resolve();
  return new Promise((resolve) => {
    Counter.expected = expected;
    Counter.reached = resolve;
  });
};

/**
 * The least that mailboxes and handlers can cost in the same shape: an array for each as a queue, and a call through an
 * object. `perRound` messages are queued before any is handled.
 */
function queuePlusCall(perRound: number, targets: number): () => Promise<number> {
  return () => {
    let handled = 0;
    const all = Array.from({ length: targets }, () => ({ onReceive: (_message: number): void => void (handled += 1) }));
    const began = now();
    for (let sent = 0; sent < million; sent += perRound) {
      const queues = all.map((): number[] => []);
      for (let n = 0; n < perRound; n += targets) for (const queue of queues) queue.push(n);
      for (let k = 0; k < targets; k += 1) for (const message of queues[k]!) all[k]!.onReceive(message);
    }
    check(handled, million, 'queue plus call');
    return Promise.resolve(million / (now() - began) * 1_000);
  };
}

async function chunks(): Promise<number> {
  Counter.count = 0;
  const began = now();
  for (let sent = 0; sent < million; sent += 10_000) {
    for (let n = 0; n < 10_000; n += 1) counter.tell(n);
    await quiet(sent + 10_000);
  }
  check(Counter.count, million, 'tell in chunks');
  return million / (now() - began) * 1_000;
}

async function burst(): Promise<number> {
  Counter.count = 0;
  const began = now();
  for (let n = 0; n < million; n += 1) counter.tell(n);
  await quiet(million);
  check(Counter.count, million, 'tell in one burst');
  return million / (now() - began) * 1_000;
}

const many = Array.from({ length: 1_000 }, (_, n) => system.spawn(Counter, `many-${n}`));
async function toMany(): Promise<number> {
  Counter.count = 0;
  const began = now();
  for (let round = 0; round < 1_000; round += 1) {
    for (const one of many) one.tell(round);
    if (round % 10 === 9) await quiet((round + 1) * 1_000);
  }
  check(Counter.count, million, 'tell to 1 000 actors');
  return million / (now() - began) * 1_000;
}

async function asks(atOnce: number): Promise<number> {
  const total = 50_000;
  const began = now();
  for (let n = 0; n < total; n += atOnce) {
    if (atOnce === 1) check(await echo.ask<number>(n), n, 'ask');
    else {
      const replies = await Promise.all(Array.from({ length: atOnce }, (_, k) => echo.ask<number>(n + k)));
      replies.forEach((reply, k) => check(reply, n + k, 'ask'));
    }
  }
  return total / (now() - began) * 1_000;
}

/** Until the last one has handled a message; then each of the others handles one too, which is not timed. */
async function spawns(): Promise<number> {
  const total = 20_000;
  Counter.count = 0;
  const began = now();
  const refs = Array.from({ length: total }, () => system.spawnAnonymous(Counter));
  refs.at(-1)!.tell(0);
  await quiet(1);
  const rate = total / (now() - began) * 1_000;
  for (const ref of refs.slice(0, -1)) ref.tell(0);
  await quiet(total);
  check(Counter.count, total, 'actors started');
  for (const ref of refs) ref.stop();
  await turn();
  return rate;
}

async function beside(shape: string, ours: () => Promise<number>, limit: () => Promise<number>): Promise<Row['limit']> {
  const raw = await repeat(`queue plus call, ${shape}`, 'calls/s', runs, limit);
  emit({ ...raw, context: true });
  emit(
    await repeat(`local tell, ${shape}`, 'msg/s', runs, ours, {
      what: 'queue plus call, same shape',
      value: raw.value,
    }),
  );
  return { what: 'queue plus call', value: raw.value };
}

const raw = await beside('chunks of 10 000', chunks, queuePlusCall(10_000, 1));
await beside('burst of a million', burst, queuePlusCall(million, 1));
await beside('1 000 actors', toMany, queuePlusCall(10_000, 1_000));
emit(await repeat('local ask, one at a time', 'asks/s', runs, () => asks(1), raw));
emit(await repeat('local ask, 100 in flight', 'asks/s', runs, () => asks(100), raw));
emit(await repeat('actors started', 'actors/s', runs, spawns, raw));
await system.terminate();
