/** Commands that look: status, members, singletons, events. */
import type { InspectionEvent, MembersReport, SingletonDetail, SingletonReport } from '../src/http/mod.ts';
import { type CommandContext, flag, waitUntil } from './context.ts';
import { followEvents, type StreamEvent } from './event_stream.ts';
import { CliError, type ExitCode, exitCodes } from './exit_codes.ts';
import { type ClusterStatus, type Expectations, unmet } from './expectations.ts';
import type { CountRule } from './flag_values.ts';
import { type Cell, type Colour, durationText, paint, table } from './output.ts';
import { plain } from '../src/http/text_table.ts';

export async function status(context: CommandContext): Promise<ExitCode> {
  const expected: Expectations = {
    members: flag<CountRule>(context, 'members'),
    singletons: flag<readonly string[]>(context, 'singletons') ?? [],
    appVersion: flag<string>(context, 'app-version'),
  };
  let last: { status: ClusterStatus; missing: string[] } | undefined;
  let failure: unknown;
  await waitUntil(context, flag<number>(context, 'wait') ?? 0, async (note) => {
    try {
      const now = await readStatus(context);
      last = { status: now, missing: unmet(now, expected) };
      failure = undefined;
      if (last.missing.length === 0) return true;
      note(`waiting: ${last.missing[0]}`);
    } catch (error) {
      // A node that starts does not answer yet; a wrong token will not become right.
      if (!(error instanceof CliError) || error.exitCode !== exitCodes.noAnswer) throw error;
      failure = error;
      note(`waiting: ${error.message}`);
    }
    return undefined;
  });
  if (failure !== undefined) throw failure;
  if (last === undefined) throw new CliError(exitCodes.noAnswer, 'no-answer', 'The node gave no answer.');
  const { status, missing } = last;
  if (context.json) {
    context.terminal.out(JSON.stringify({ ...status, asExpected: missing.length === 0, unmet: missing }));
  } else printStatus(context, status, missing);
  return missing.length === 0 ? exitCodes.done : exitCodes.notAsExpected;
}

async function readStatus({ node }: CommandContext): Promise<ClusterStatus> {
  const [ready, members, list] = await Promise.all([
    node.getReady(),
    node.get<MembersReport>('cluster/members'),
    node.get<{ singletons: readonly SingletonReport[] }>('cluster/singletons'),
  ]);
  return { url: node.url, ...ready, ...members, singletons: list.singletons };
}

function printStatus(context: CommandContext, status: ClusterStatus, missing: readonly string[]): void {
  const { terminal } = context;
  const ready = paint(status.ready ? 'ready' : 'not ready', status.ready ? 'good' : 'bad', terminal.colours);
  terminal.out(`${plain(status.self)}, ${ready}, leader ${plain(status.leader ?? 'none')}\n`);
  terminal.out(`${membersTable(status, terminal.colours)}\n`);
  terminal.out(singletonsTable(context, status.singletons));
  const waits = status.ready ? status.reasons : [];
  if (missing.length + waits.length > 0) terminal.out('');
  for (const line of waits) terminal.out(paint(plain(line), 'warn', terminal.colours));
  for (const line of missing) terminal.out(paint(plain(line), 'bad', terminal.colours));
}

export async function members(context: CommandContext): Promise<ExitCode> {
  const report = await context.node.get<MembersReport>('cluster/members');
  context.terminal.out(context.json ? JSON.stringify(report) : membersTable(report, context.terminal.colours));
  return exitCodes.done;
}

const statusColours: Readonly<Record<string, Colour>> = { up: 'good', down: 'bad' };

function membersTable({ self, leader, members }: MembersReport, colours: boolean): string {
  const rows = members.map((member): (Cell | string)[] => [
    member.address,
    { text: member.status, colour: statusColours[member.status] ?? 'warn' },
    member.upNumber === 0 ? '-' : String(member.upNumber),
    member.roles.join(',') || '-',
    member.runtime,
    member.appVersion || '-',
    member.reachable ? 'yes' : { text: 'no', colour: 'bad' },
    [...(member.address === self ? ['this node'] : []), ...(member.address === leader ? ['leader'] : [])].join(', '),
  ]);
  return table(['MEMBER', 'STATUS', 'AGE', 'ROLES', 'RUNTIME', 'VERSION', 'REACHABLE', ''], rows, colours);
}

export async function singletons(context: CommandContext): Promise<ExitCode> {
  const [name] = context.operands;
  const { terminal, json, node } = context;
  if (name === undefined) {
    const list = await node.get<{ singletons: readonly SingletonReport[] }>('cluster/singletons');
    terminal.out(json ? JSON.stringify(list) : singletonsTable(context, list.singletons));
    return exitCodes.done;
  }
  const detail = await node.get<SingletonDetail>(`cluster/singletons/${encodeURIComponent(name)}`);
  if (json) terminal.out(JSON.stringify(detail));
  else printDetail(context, detail);
  return exitCodes.done;
}

function singletonsTable(context: CommandContext, list: readonly SingletonReport[]): string {
  const { colours } = context.terminal;
  if (list.length === 0) return paint('No singleton has been started.', 'quiet', colours);
  const rows = list.map((one): (Cell | string)[] => [
    one.name,
    one.host ?? { text: one.problem ?? 'nobody', colour: 'bad' },
    one.epoch === null ? '-' : String(one.epoch),
    one.since === null ? '-' : durationText(context.wall() - one.since),
    one.state,
  ]);
  return table(['SINGLETON', 'HOST', 'EPOCH', 'FOR', 'ON THIS NODE'], rows, colours);
}

function printDetail(context: CommandContext, detail: SingletonDetail): void {
  const { terminal } = context;
  const { lastHandOver: last, lease } = detail;
  const rows: [string, string][] = [
    ['host', detail.host ?? detail.problem ?? 'nobody'],
    ['epoch', String(detail.epoch ?? '-')],
    ['for', detail.since === null ? '-' : durationText(context.wall() - detail.since)],
    ['on this node', detail.state],
    ['role', detail.role ?? '-'],
    ['started on', detail.startedOn.join(', ') || '-'],
    ['held on', detail.pinnedTo ?? '-'],
    ['buffered here', String(detail.buffered)],
    ...Object.entries(detail.counters).map(([what, count]): [string, string] => [`  ${what}`, String(count)]),
  ];
  if (last !== null) {
    const gap = last.durationMs === null ? '' : `, ${durationText(last.durationMs)}`;
    rows.push(['last hand-over', `${last.from ?? 'nobody'} to ${last.to}: ${last.reason}${gap}`]);
  }
  if (lease !== undefined) rows.push(['lease', `${lease.state}${lease.problem === null ? '' : `: ${lease.problem}`}`]);
  terminal.out(table([plain(detail.name), ''], rows, terminal.colours));
}

export async function events(context: CommandContext): Promise<ExitCode> {
  const { terminal, json } = context;
  const limit = flag<number>(context, 'for');
  const ended = new AbortController();
  const timer = limit === undefined ? undefined : setTimeout(() => ended.abort(), limit);
  try {
    await followEvents({
      open: (path, headers, signal) => context.node.open(path, headers, signal),
      replay: flag<number>(context, 'replay') ?? 0,
      signal: AbortSignal.any([ended.signal, context.interrupted]),
      onEvent: (event) => terminal.out(json ? JSON.stringify(event) : eventLine(event, terminal.colours)),
      onLost: (why) => terminal.note(`connection lost (${plain(why)}), trying again`),
      pause: context.pause,
    });
  } finally {
    clearTimeout(timer);
  }
  return exitCodes.done;
}

const eventColours: Partial<Record<InspectionEvent['kind'], Colour>> = {
  'member-down': 'bad',
  'self-removed': 'bad',
  'member-unreachable': 'warn',
  warning: 'warn',
};

function eventLine(event: StreamEvent, colours: boolean): string {
  if (event.kind === 'reset') return paint(plain(event.text), 'warn', colours);
  const time = paint(new Date(event.at).toISOString(), 'quiet', colours);
  return `${time}  ${paint(plain(event.text), eventColours[event.kind], colours)}`;
}
