/** Every state of the manager against every event, by running it: the source of docs/manager_states.md. */
import type { MembershipView } from '../../src/cluster/member.ts';
import { defaultManagerConfig, initialManager, manage } from '../../src/singleton/manager.ts';
import type { ManagerEvent, ManagerState, Phase, PhaseKind } from '../../src/singleton/manager_state.ts';
import { member, viewOf } from './manager_world.ts';

const record = { generation: 1, role: undefined };
const started = new Map([['x', record]]);

/** Three members that have started it; `self` is b, in the middle by age. */
const members = [
  member('a', { upNumber: 1, started }),
  member('b', { upNumber: 2, started }),
  member('c', { upNumber: 3, started }),
];

const asHost = (): MembershipView => viewOf([{ ...members[0]!, status: 'leaving' }, members[1]!, members[2]!], 'b');
const asYounger = (): MembershipView => viewOf(members, 'b');
const attempt = {
  nonce: 'b/1',
  startedAt: 0,
  replies: new Map(),
  refusals: new Map(),
  asked: new Set(['a', 'c']),
  reached: new Map(),
  custodians: new Set<string>(),
  doubted: false,
  denials: 0,
  repeats: 0,
  timedOut: false,
};
const instance = { epoch: 5, plannedSince: 5 };
const result = { ...instance, from: 'a:1', watermarks: [], state: null, endedAt: 0, offeredTo: [], givenUp: [] };

const phases: Readonly<Record<PhaseKind, [Phase, () => MembershipView]>> = {
  'idle': [{ kind: 'idle' }, () => viewOf([members[0]!], 'b')],
  'younger': [{ kind: 'younger' }, asYounger],
  'becoming-host': [{ kind: 'becoming-host', attempt }, asHost],
  'acquiring-lease': [{ kind: 'acquiring-lease', attempt }, asHost],
  'hosting': [{ kind: 'hosting', ...instance, instance: 'running', runningSince: 0, failures: 0 }, asHost],
  'was-host': [{ kind: 'was-host', ...instance, instance: 'running', runningSince: 0, failures: 0 }, asYounger],
  'handing-over': [
    { kind: 'handing-over', ...instance, asker: { uid: 'a', address: 'a:1', nonce: 'a/1' }, why: 'hand-over' },
    asYounger,
  ],
  'stopping': [{ kind: 'stopping', ...instance, asker: undefined, why: 'stop-called' }, asYounger],
  'ended': [{ kind: 'ended' }, asYounger],
};

const ask = (uid: string): ManagerEvent => ({
  kind: 'request',
  asker: { uid, address: `${uid}:1`, nonce: `${uid}/1` },
  epoch: 6,
});
const answer = (verdict: Extract<ManagerEvent, { kind: 'answer' }>['verdict'], nonce = 'b/1'): ManagerEvent => ({
  kind: 'answer',
  uid: 'a',
  nonce,
  epochSeen: 5,
  epochStarted: 5,
  verdict,
});
const ended = (cause: 'planned' | 'died'): ManagerEvent => ({
  kind: 'instance-ended',
  epoch: 5,
  cause,
  watermarks: [],
  state: null,
});
const timer = (name: Extract<ManagerEvent, { kind: 'timer' }>['timer']): ManagerEvent => ({
  kind: 'timer',
  timer: name,
});

export const events: Readonly<Record<string, ManagerEvent>> = {
  'view': { kind: 'view' },
  'start': { kind: 'start', record, config: defaultManagerConfig },
  'stop': { kind: 'stop' },
  'leave': { kind: 'leave' },
  'self-down': { kind: 'self-down', why: 'lost split' },
  'request, older member': ask('a'),
  'request, younger member': ask('c'),
  'request, stranger': ask('z'),
  'reached': { kind: 'reached', uid: 'a' },
  'withdrawn': { kind: 'withdrawn', uid: 'a', nonce: 'a/1' },
  'answer not-hosting': answer({ kind: 'not-hosting' }),
  'answer stopping': answer({ kind: 'stopping' }),
  'answer handed-over': answer({ kind: 'handed-over', result }),
  'answer refused': answer({ kind: 'refused', why: 'no' }),
  'answer, old nonce': answer({ kind: 'not-hosting' }, 'b/0'),
  'hosted-elsewhere': { kind: 'hosted-elsewhere', address: 'a:1', epoch: 9 },
  'instance-started': { kind: 'instance-started', epoch: 5 },
  'instance ended as planned': ended('planned'),
  'instance died': ended('died'),
  'lease-granted': { kind: 'lease-granted', token: 9 },
  'lease-denied': { kind: 'lease-denied', retryInMs: 100, why: 'held' },
  'lease-lost': { kind: 'lease-lost', why: 'expired' },
  'timer resend': timer('resend'),
  'timer hand-over-timeout': timer('hand-over-timeout'),
  'timer restart': timer('restart'),
  'timer acquire': timer('acquire'),
  'timer stop-timeout': timer('stop-timeout'),
  'timer kept': timer('kept'),
  'timer draw': timer('draw'),
};

export interface Cell {
  readonly phase: PhaseKind;
  readonly event: string;
  readonly next: PhaseKind;
  readonly effects: readonly string[];
}

export function table(): Cell[] {
  const cells: Cell[] = [];
  for (const [phase, [state, view]] of Object.entries(phases) as [PhaseKind, (typeof phases)[PhaseKind]][]) {
    for (const [event, what] of Object.entries(events)) {
      const before: ManagerState = {
        ...initialManager('x', 'b', 'b:1'),
        started: phase === 'idle' ? undefined : record,
        leaving: phase === 'ended',
        config: { ...defaultManagerConfig, lease: phase === 'acquiring-lease' },
        phase: state,
        epochSeen: 5,
        epochStarted: 5,
      };
      const step = manage(before, what, view(), 1_000, 0);
      const effects = step.effects.flatMap((effect) => {
        if (effect.kind === 'log' || effect.kind === 'set-timer' || effect.kind === 'clear-timer') return [];
        return [effect.kind === 'answer' ? `answer ${effect.verdict.kind}` : effect.kind];
      });
      cells.push({ phase, event, next: step.state.phase.kind, effects: [...new Set(effects)] });
    }
  }
  return cells;
}

/** The table as Markdown. */
export function document(): string {
  const cells = table();
  const lines = [
    '# The singleton manager: every state against every event',
    '',
    'Made by running the manager (`npm run docs:manager`); a test keeps it true. The node in the table is the middle one of',
    'three members that have started the singleton. A cell names the next state where it differs, then what is done.',
    '',
  ];
  for (const phase of Object.keys(phases)) {
    lines.push(`## ${phase}`, '', '| event | next state | effects |', '| --- | --- | --- |');
    for (const { event, next, effects } of cells.filter((cell) => cell.phase === phase)) {
      lines.push(`| ${event} | ${next === phase ? '' : next} | ${effects.join(', ')} |`);
    }
    lines.push('');
  }
  return lines.join('\n');
}
