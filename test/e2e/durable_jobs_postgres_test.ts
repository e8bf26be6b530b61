/** The jobs of ready-made nodes in PostgreSQL. */
import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { postgresMissing, startPostgres } from '../contract/postgres_server.ts';
import { deadlineMs, exitOf, post, type ReceivedCall, scene, until } from './cluster_process.ts';
import { assertGoesOn, callsAfter, everyMs, idsOf, jobs, postAll, slowCall } from './durable_jobs_scene.ts';

const skip = await postgresMissing();

describe('jobs in PostgreSQL', { skip }, () => {
  for (const kinds of [['bun', 'node'], ['node', 'deno'], ['deno', 'bun']] as const) {
    test(
      `SIGKILL and SIGTERM of the host: the next has the jobs (${kinds})`,
      scene(async (s) => {
        const server = await startPostgres();
        try {
          const receiver = await s.receiver();
          const flags = ['--postgres', server.url];
          const nodes = await s.cluster(kinds, flags);
          await postAll(nodes[1]!, receiver);
          const [{ epoch }] = await callsAfter(receiver, 0, 5 * jobs) as [ReceivedCall];
          const last = await slowCall(receiver);
          nodes[0]!.process.signal('SIGKILL');
          const [first] = await callsAfter(receiver, epoch, 5 * jobs);
          assertEquals(first!.host, nodes[1]!.line.address);
          const slow = receiver.calls.find((call) => call.id === 'slow' && call.epoch > epoch)!;
          assertEquals([slow.run, slow.dueAt], [last.run, last.dueAt]);
          const doubled = assertGoesOn(receiver.calls).length;
          const third = await s.startReady(kinds[0], [...flags, '--seeds', nodes[1]!.line.address]);
          nodes[1]!.process.signal('SIGTERM');
          await exitOf(nodes[1]!.process);
          await callsAfter(receiver, first!.epoch, 5 * jobs);
          assertEquals(assertGoesOn(receiver.calls).length, doubled);
          assertEquals((await idsOf(third)).length, jobs + 1);
        } finally {
          await server.stop();
        }
      }),
    );
  }

  for (const runtime of ['bun', 'deno', 'node'] as const) {
    test(
      `a PostgreSQL that crashes under its host: the node goes on, and a job that was accepted is kept (${runtime})`,
      scene(async (s) => {
        const server = await startPostgres();
        try {
          const receiver = await s.receiver();
          const node = await s.startReady(runtime, ['--postgres', server.url]);
          const accepted: string[] = [];
          const accept = async (): Promise<void> => {
            const id = `job${accepted.length}`;
            const response = await post(node, '/jobs', { id, everyMs, url: receiver.url('/hook') });
            await response.body?.cancel();
            if (response.status === 201 || response.status === 200) accepted.push(id);
          };
          const more = async (): Promise<void> => {
            const enough = accepted.length + 3;
            await until('more jobs', deadlineMs, async () => {
              await accept();
              return accepted.length >= enough || undefined;
            });
          };
          for (let crashes = 0; crashes < 4; crashes += 1) {
            await more();
            const back = server.restart();
            await accept();
            await back;
          }
          await more();
          assertEquals(await idsOf(node), accepted.toSorted());
          const seen = receiver.calls.length;
          await until('calls of all', deadlineMs, () => {
            return new Set(receiver.calls.slice(seen).map((call) => call.id)).size === accepted.length || undefined;
          });
          assertGoesOn(receiver.calls);
        } finally {
          await server.stop();
        }
      }),
    );
  }
});
