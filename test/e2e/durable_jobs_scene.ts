/** Jobs that outlive their hosts, and what their targets must have seen. */
import { assertEquals, assertGreater } from '@std/assert';
import { type JobSpec, postJob } from '../../demo/jobs_client.ts';
import {
  deadlineMs,
  json,
  type ReceivedCall,
  type Receiver,
  request,
  sleep,
  type TestNode,
  until,
} from './cluster_process.ts';

export const everyMs = 200;
export const jobs = 10;

/** Jobs whose targets answer at once, and one whose target takes longer than a crash takes to be noticed. */
export function specs(receiver: Receiver): readonly JobSpec[] {
  const quick = Array.from(
    { length: jobs },
    (_, index) => ({ id: `job${index}`, everyMs, url: receiver.url('/hook') }),
  );
  return [...quick, { id: 'slow', everyMs: 1_000, url: receiver.url('/slow/800') }];
}

export async function postAll(node: TestNode, receiver: Receiver): Promise<void> {
  for (const spec of specs(receiver)) {
    await postJob(node.line.url, spec, deadlineMs);
    await sleep(everyMs / jobs);
  }
}

export function callsAfter(receiver: Receiver, epoch: number, count: number): Promise<readonly ReceivedCall[]> {
  return until(`${count} calls after epoch ${epoch}`, deadlineMs, () => {
    const calls = receiver.calls.filter((call) => call.epoch > epoch);
    return calls.length >= count ? calls : undefined;
  });
}

/** Waits for the next call to the slow target: it is in flight for most of a second. */
export async function slowCall(receiver: Receiver): Promise<ReceivedCall> {
  const seen = receiver.calls.length;
  return await until('a slow call', deadlineMs, () => receiver.calls.slice(seen).find((call) => call.id === 'slow'));
}

/** Run numbers go on from 1 without a gap, each for one due time, over crashes. What came twice was each job's last. */
export function assertGoesOn(calls: readonly ReceivedCall[]): readonly string[] {
  const doubled: string[] = [];
  for (const id of new Set(calls.map((call) => call.id))) {
    const own = calls.filter((call) => call.id === id);
    const runs = [...new Set(own.map((call) => call.run))];
    assertEquals(runs, runs.map((_, index) => index + 1), id);
    assertEquals(new Set(own.map((call) => `${call.run}@${call.dueAt}`)).size, runs.length, id);
    assertEquals(new Set(own.map((call) => call.dueAt)).size, runs.length, id);
    for (const [index, call] of own.entries()) {
      const before = own.findIndex((one) => one.run === call.run);
      if (before === index) continue;
      doubled.push(id);
      assertEquals(index, before + 1, `${id}#${call.run} came again, and was not the last`);
      assertGreater(call.epoch, own[before]!.epoch);
    }
  }
  return doubled;
}

export async function idsOf(node: TestNode): Promise<readonly string[]> {
  const { jobs } = await json<{ jobs: { id: string }[] }>(await request(node, '/jobs'));
  return jobs.map((job) => job.id);
}
