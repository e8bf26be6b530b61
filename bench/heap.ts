/** Memory of actors that wait for messages. Needs a runtime that lets the program collect garbage. */
import { Actor, ActorSystem } from '../src/mod.ts';
import process from 'node:process';
import { check, emit, medianRow } from './measure.ts';

class Idle extends Actor<number> {
  static handled = 0;
  override onReceive(_message: number): void {
    Idle.handled += 1;
  }
}

const globals = globalThis as { gc?: () => void; Bun?: { gc(force: boolean): void } };
const collect = (): void => {
  for (let n = 0; n < 3; n += 1) globals.Bun === undefined ? globals.gc?.() : globals.Bun.gc(true);
};
const rounds = 5;
const count = 20_000;

/** That so many messages have been handled, and a moment more. */
async function until(handled: number): Promise<void> {
  while (Idle.handled < handled) await new Promise((resolve) => setTimeout(resolve, 5));
  check(Idle.handled, handled, 'heap of idle actors');
  Idle.handled = 0;
  await new Promise((resolve) => setTimeout(resolve, 20));
}

async function perActor(): Promise<number> {
  const system = ActorSystem.create('bench', { logLevel: 'error' });
  system.spawn(Idle, 'first').tell(0);
  await until(1);
  collect();
  const before = process.memoryUsage().heapUsed;
  const refs = Array.from({ length: count }, () => system.spawnAnonymous(Idle));
  // Each has handled a message, so that what is made at the first one is counted.
  for (const ref of refs) ref.tell(0);
  await until(count);
  collect();
  const bytes = (process.memoryUsage().heapUsed - before) / refs.length;
  await system.terminate();
  return bytes;
}

const values: number[] = [];
for (let round = 0; round <= rounds; round += 1) {
  const bytes = await perActor();
  if (round > 0) values.push(bytes);
}
emit(medianRow('heap of an idle actor, its ref held', 'B', values));
process.exit(0);
