import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import type { JobBody } from '../../node/job_call.ts';
import type { JobCommand, JobReply } from '../../node/job_messages.ts';
import { JobScheduler } from '../../node/job_scheduler.ts';
import { type ActorRef, ActorSystem } from '../../src/mod.ts';

const url = 'http://127.0.0.1:9000/hook';

/** A scheduler in a system of its own, whose targets answer at once. */
function started(): { scheduler: ActorRef<JobCommand>; bodies: JobBody[]; system: ActorSystem } {
  const system = ActorSystem.create('test', { logLevel: 'off' });
  const bodies: JobBody[] = [];
  const fetch = (_url: string, init: RequestInit) => {
    bodies.push(JSON.parse(init.body as string));
    return Promise.resolve(new Response(null, { status: 204 }));
  };
  return { scheduler: system.spawn(() => new JobScheduler('127.0.0.1:1', fetch), 'scheduler'), bodies, system };
}

async function seen(bodies: readonly unknown[], count: number): Promise<void> {
  while (bodies.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('job scheduler', () => {
  test('takes jobs, calls their targets again and again, shows and forgets them', async () => {
    const { scheduler, bodies, system } = started();
    const put = await scheduler.ask<JobReply>({ kind: 'put', job: { id: 'tick', url, everyMs: 20 } });
    assert(put.kind === 'job' && put.change === 'created');
    await seen(bodies, 5);
    assertEquals(bodies.slice(0, 5).map((body) => body.run), [1, 2, 3, 4, 5]);
    const dues = bodies.map((body) => Date.parse(body.dueAt));
    for (const due of dues) assertEquals((due - dues[0]!) % 20, 0);
    const shown = await scheduler.ask<JobReply>({ kind: 'get', id: 'tick' });
    assert(shown.kind === 'job' && shown.job.runs >= 4 && shown.job.failures === 0);
    assertEquals((await scheduler.ask<JobReply>({ kind: 'delete', id: 'tick' })).kind, 'deleted');
    assertEquals((await scheduler.ask<JobReply>({ kind: 'list' })).kind, 'page');
    await system.terminate();
  });

  test('its sleep is cut short by a job that is due sooner', async () => {
    const { scheduler, bodies, system } = started();
    await scheduler.ask({ kind: 'put', job: { id: 'late', url, everyMs: 3_600_000 } });
    await scheduler.ask({ kind: 'put', job: { id: 'soon', url, everyMs: 20 } });
    await seen(bodies, 1);
    assertEquals(bodies[0]!.id, 'soon');
    await system.terminate();
  });

  test('answers nonsense with a refusal and lives on', async () => {
    const { scheduler, system } = started();
    const reply = await scheduler.ask<JobReply>({ kind: 'nonsense' } as unknown as JobCommand);
    assert(reply.kind === 'refused' && reply.refusal.field === 'kind');
    assertEquals((await scheduler.ask<JobReply>({ kind: 'list' })).kind, 'page');
    await system.terminate();
  });
});
