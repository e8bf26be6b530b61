/** Commands that do something. Each needs the token. */
import type { MembersReport, SingletonDetail } from '../src/http/mod.ts';
import { type CommandContext, flag, waitUntil } from './context.ts';
import { CliError, type ExitCode, exitCodes } from './exit_codes.ts';

export async function leave(context: CommandContext): Promise<ExitCode> {
  const { leaving } = await context.node.post<{ leaving: string }>('cluster/leave', {});
  const done = await waitFor(context, async (note) => {
    note(`waiting: ${leaving} hands over and leaves`);
    return await isGone(context, leaving);
  });
  return report(context, done, { leaving }, `${leaving} is leaving`, `${leaving} has left`);
}

/** It does not answer any more, or does so as a node of its own, outside. */
async function isGone({ node }: CommandContext, address: string): Promise<boolean> {
  try {
    const { members } = await node.get<MembersReport>('cluster/members');
    return !members.some((member) => member.address === address);
  } catch (error) {
    if (error instanceof CliError && error.exitCode === exitCodes.noAnswer) return true;
    throw error;
  }
}

export async function down(context: CommandContext): Promise<ExitCode> {
  const address = context.operands[0] ?? '';
  await context.node.post('cluster/down', { address });
  const done = await waitFor(context, async (note) => {
    note(`waiting: ${address} is removed`);
    return await isGone(context, address);
  });
  return report(context, done, { downed: address }, `${address} is down`, `${address} is removed`);
}

export async function move(context: CommandContext): Promise<ExitCode> {
  const name = context.operands[0] ?? '';
  const to = flag<string>(context, 'to');
  const path = `cluster/singletons/${encodeURIComponent(name)}`;
  const answer = await context.node.post<{ from: string | null; to: string }>(
    `${path}/move`,
    to === undefined ? {} : { to },
  );
  const done = await waitFor(context, async (note) => {
    note(`waiting: ${name} starts on ${answer.to}`);
    const { host } = await context.node.get<SingletonDetail>(path);
    return host === answer.to;
  });
  return report(
    context,
    done,
    { singleton: name, ...answer },
    `${name} moves to ${answer.to}`,
    `${name} runs on ${answer.to}`,
  );
}

export async function rebalance(context: CommandContext): Promise<ExitCode> {
  const { moves } = await context.node.post<{ moves: readonly { singleton: string; to: string }[] }>(
    'cluster/rebalance',
    {},
  );
  const done = await waitFor(context, async (note) => {
    for (const { singleton, to } of moves) {
      note(`waiting: ${singleton} starts on ${to}`);
      const { host } = await context.node.get<SingletonDetail>(`cluster/singletons/${encodeURIComponent(singleton)}`);
      if (host !== to) return false;
    }
    return true;
  });
  const where = moves.map(({ singleton, to }) => `${singleton} to ${to}`).join(', ');
  if (moves.length === 0) return report(context, done, { moves }, 'nothing moves', 'everything is in its place');
  return report(context, done, { moves }, `moving: ${where}`, `moved: ${where}`);
}

export async function prepareShutdown(context: CommandContext): Promise<ExitCode> {
  const answer = await context.node.post<{ prepared: readonly string[] }>('cluster/prepare-shutdown', {});
  const text = `prepared, nothing is handed over any more: ${answer.prepared.join(', ')}`;
  return report(context, 'not-asked', answer, text, text);
}

export async function cancelShutdown(context: CommandContext): Promise<ExitCode> {
  const answer = await context.node.post<{ cancelled: boolean }>('cluster/cancel-shutdown', {});
  const text = answer.cancelled ? 'singletons start and move again' : 'no full shutdown was prepared';
  return report(context, 'not-asked', answer, text, text);
}

type Waited = 'not-asked' | 'done' | 'late';

async function waitFor(
  context: CommandContext,
  isDone: (note: (text: string) => void) => Promise<boolean>,
): Promise<Waited> {
  const waitMs = flag<number>(context, 'wait');
  if (waitMs === undefined) return 'not-asked';
  const done = await waitUntil(context, waitMs, async (note) => await isDone(note) ? true : undefined);
  return done === undefined ? 'late' : 'done';
}

function report(
  { json, terminal }: CommandContext,
  waited: Waited,
  fields: object,
  asked: string,
  done: string,
): ExitCode {
  const text = waited === 'done' ? `${done}.` : waited === 'late' ? `${asked}; the wait is over.` : `${asked}.`;
  terminal.out(
    json ? JSON.stringify({ ...fields, ...(waited === 'not-asked' ? {} : { done: waited === 'done' }) }) : text,
  );
  return waited === 'late' ? exitCodes.notAsExpected : exitCodes.done;
}
