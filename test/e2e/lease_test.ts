/** Leases over real processes: hosts that are stopped, woken and killed, with each backend and on each runtime. */
import { after, before, describe, test } from 'node:test';
import { assert, assertEquals, assertLess } from '@std/assert';
import { postgresMissing, type PostgresServer, startPostgres } from '../contract/postgres_server.ts';
import { EtcdServer, noEtcd } from '../coordination/etcd_server.ts';
import { deadlineMs, sleep, until } from './cluster_process.ts';
import { LeaseScene, type SceneBackend, type Worker } from './lease_scene.ts';
import { assertOneAfterTheOther, atWork, orders, ttlMs } from './lease_steps.ts';

const noPostgres = await postgresMissing();

/** SIGSTOP for three terms with a handler half-way and messages queued behind it, then SIGCONT. */
async function sleepAndWake(scene: LeaseScene, host: Worker, token: number): Promise<void> {
  await scene.hold(host);
  await sleep(500);
  const stoppedAt = performance.now();
  host.signal('SIGSTOP');
  const next = await scene.successor(token);
  assert(next.worker !== host);
  await sleep(Math.max(0, 3 * ttlMs - (performance.now() - stoppedAt)));
  // The first thing it finds on waking is that its handler may go on.
  scene.store.openGate();
  const wokenAt = Date.now();
  host.signal('SIGCONT');
  const [late] = await until('the late write is answered', deadlineMs, () => {
    const lines = host.of('late');
    return lines.length > 0 ? lines : undefined;
  });
  assertEquals([late!.token, late!.fence, late!.status], [token, 'FencedError', 409]);
  assert(scene.store.writes.some((write) => write.token === token && !write.accepted));
  await until('its instance has ended', deadlineMs, () => host.of('ended').length > 0 || undefined);
  assertEquals(host.handled().filter((line) => line.token === token && line.at >= wokenAt), []);
}

/** SIGKILL; how long until another instance handled its first message. */
async function kill(scene: LeaseScene, host: Worker, token: number): Promise<number> {
  const killedAt = Date.now();
  host.signal('SIGKILL');
  const next = await scene.successor(token);
  assert(next.worker !== host);
  return next.at - killedAt;
}

/** How long the take-over of a killed host took. */
async function pausedThenKilled(scene: LeaseScene): Promise<number> {
  const first = await atWork(scene);
  await sleepAndWake(scene, first.host, first.token);
  // It joins again as a new member, whose voter grants nothing for the length of a term.
  await scene.ready(first.host);
  await scene.members(scene.workers.length);
  await sleep(ttlMs + 1_000);
  const { token } = scene.store.writes.at(-1)!;
  const host = scene.workers.find((worker) => worker.handled().at(-1)?.token === token)!;
  const takenOverMs = await kill(scene, host, token);
  assertOneAfterTheOther(scene);
  return takenOverMs;
}

interface Backend {
  readonly name: string;
  readonly skip: string | false;
  /** The servers are started once for the whole file. */
  readonly settings: () => SceneBackend;
}

let etcd: EtcdServer | undefined;
let postgres: PostgresServer | undefined;
const backends: readonly Backend[] = [
  { name: 'quorum', skip: false, settings: () => ({}) },
  { name: 'etcd', skip: noEtcd, settings: () => ({ etcd: [etcd!.url] }) },
  { name: 'PostgreSQL', skip: noPostgres, settings: () => ({ postgres: postgres!.url }) },
];

const story = 'S1, R70, FB-036: stopped for three terms and woken, the host handles nothing and its late write is ' +
  'refused; the next is killed and taken over; one clock is an hour ahead, one an hour behind';

describe('leases of real processes', { concurrency: 3 }, () => {
  const takeOvers = new Map<string, number[]>();

  before(async () => {
    if (noEtcd === false) etcd = await EtcdServer.start();
    if (noPostgres === false) postgres = await startPostgres();
  });

  after(async () => {
    await etcd?.remove();
    await postgres?.stop();
    for (const [backend, all] of takeOvers) {
      // One in three must not have been held up by a machine that has other things to do.
      const best = Math.min(...all);
      assertLess(best, ttlMs + 1_000, `R71: ${backend}: taken over after ${all.join(', ')} ms`);
    }
  });

  for (const { name, skip, settings } of backends) {
    for (const runtimes of orders) {
      test(
        `${story} (${name}: ${runtimes.join(', ')})`,
        { skip },
        LeaseScene.test(async (scene) => {
          await scene.start(runtimes, ttlMs, settings());
          const takenOverMs = await pausedThenKilled(scene);
          // Within a term and a second is the promise; a machine with other things to do may need longer.
          assertLess(takenOverMs, ttlMs + 1_000 + deadlineMs / 2);
          takeOvers.set(name, [...takeOvers.get(name) ?? [], takenOverMs]);
        }),
      );
    }
  }
});
