/** What the tests of leased workers do and check again and again. */
import { assertEquals, assertGreater } from '@std/assert';
import { deadlineMs, type RuntimeName, sleep, until } from './cluster_process.ts';
import type { LeaseScene, Worker } from './lease_scene.ts';

export const ttlMs = 2_000;

/** Each runtime is the first host once, has the clock that is ahead once, and the one that is behind. */
export const orders: readonly (readonly [RuntimeName, RuntimeName, RuntimeName])[] = [
  ['bun', 'deno', 'node'],
  ['node', 'bun', 'deno'],
  ['deno', 'node', 'bun'],
];

/** No instance handles anything after a later one has, and the store took nothing of an older one after a younger one. */
export function assertOneAfterTheOther(scene: LeaseScene): void {
  const handled = scene.workers.flatMap((worker) => worker.handled());
  const tokens = [...new Set(handled.map(({ token }) => token))].sort((a, b) => a - b);
  for (const token of tokens) {
    const first = Math.min(...handled.filter((line) => line.token === token).map(({ at }) => at));
    const late = handled.filter((line) => line.token < token && line.at > first);
    assertEquals(late, [], `handled by an older instance after ${token} had begun at ${first}`);
  }
  const taken = scene.store.writes.filter((write) => write.accepted).map(({ token }) => token);
  assertEquals(taken, [...taken].sort((a, b) => a - b));
}

/** Waits until the singleton is at work; where, and with which token. */
export async function atWork(scene: LeaseScene): Promise<{ readonly host: Worker; readonly token: number }> {
  const { worker, token } = await scene.successor(0);
  await until('it has handled some', deadlineMs, () => worker.handled().length >= 20 || undefined);
  return { host: worker, token };
}

/** The backend is gone for the host, for longer than a term: the instance ends, and nobody handles anything. */
export async function outage(scene: LeaseScene, begin: () => unknown): Promise<{ host: Worker; token: number }> {
  const { host, token } = await atWork(scene);
  await begin();
  const begunAt = Date.now();
  await until('the instance has ended', deadlineMs, () => host.of('ended').length > 0 || undefined);
  await sleep(Math.max(0, begunAt + ttlMs + 1_000 - Date.now()));
  // Its last renewal was sent before. A busy machine may let a moment pass between the gate and the reading of the clock.
  const termsEnd = begunAt + ttlMs + 100;
  assertEquals(scene.workers.flatMap((worker) => worker.handled()).filter(({ at }) => at >= termsEnd), []);
  return { host, token };
}

/** Nothing passes between any two workers; what each of them reaches outside stays. */
export function cutInTwo(scene: LeaseScene): Promise<void> {
  for (const way of scene.ways) way.silence();
  return sleep(500);
}

export async function exactlyOne(scene: LeaseScene, before: number): Promise<void> {
  const next = await scene.successor(before);
  await until('it handles more', deadlineMs, () => {
    return next.worker.handled().filter((line) => line.token === next.token).length >= 20 || undefined;
  });
  const living = scene.workers.map((worker) => worker.of('born').length - worker.of('ended').length);
  assertEquals(living.reduce((sum, count) => sum + count), 1);
  assertGreater(next.token, before);
  assertOneAfterTheOther(scene);
}
