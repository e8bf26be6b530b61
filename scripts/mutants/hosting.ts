/** Deliberate faults in hosting (rules 8 to 11). */
import type { Mutant } from './mutant.ts';

export const hostingMutants: readonly Mutant[] = [
  {
    name: 'youngest-hosts',
    rule: 8,
    what: 'the youngest member hosts, so that a join moves',
    file: 'src/singleton/host.ts',
    find: '  const able = view.members.filter((member) =>\n    member.status',
    replace: '  const able = view.members.toReversed().filter((member) =>\n    member.status',
  },
  {
    name: 'stopped-node-is-host',
    rule: 8,
    what: 'a node that has called `stop` still counts as a host',
    file: 'src/singleton/host.ts',
    find: "member.status === 'up' && member.started.has(name) && carriesRole(member, record?.role)",
    replace: "member.status === 'up' && carriesRole(member, record?.role)",
  },
  {
    name: 'termination-not-awaited',
    rule: 9,
    what: 'a becoming host does not wait for the termination of the instance before',
    file: 'src/singleton/manager_becoming.ts',
    find: "reply = 'stopping';",
    replace: "reply = 'clear';",
  },
  {
    name: 'only-the-oldest-is-asked',
    rule: 9,
    what: 'a becoming host asks only members that could host now',
    file: 'src/singleton/manager_becoming.ts',
    find: 'member.uid !== draft.state.selfUid && !member.terminated);',
    replace:
      "member.uid !== draft.state.selfUid && !member.terminated && member.status === 'up' && member.started.has(draft.state.name));",
  },
  {
    name: 'down-members-are-passed-over',
    rule: 9,
    what: 'a member that is down, and not yet removed, is not waited for',
    file: 'src/singleton/manager_becoming.ts',
    find: "const blockers = members.filter((member) => attempt.replies.get(member.uid) !== 'clear');",
    replace:
      "const blockers = members.filter((member) => member.status !== 'down' && attempt.replies.get(member.uid) !== 'clear');",
    profiles: ['impatience'],
  },
  {
    name: 'older-answers-count',
    rule: 9,
    what: 'an answer to an earlier attempt counts for this one',
    file: 'src/singleton/manager_becoming.ts',
    find:
      "if (answer.nonce !== current || (phase.kind !== 'becoming-host' && phase.kind !== 'acquiring-lease')) return;",
    replace:
      "if (current === undefined || (phase.kind !== 'becoming-host' && phase.kind !== 'acquiring-lease')) return;",
    profiles: ['echo'],
  },
  {
    name: 'yielding-voids-nothing',
    rule: 9,
    what: 'a becoming host that yields keeps what it has collected',
    file: 'src/singleton/manager_standing_down.ts',
    find: '      abandonAttempt(draft);\n      return answer(give(draft, asker));',
    replace: '      return answer(give(draft, asker));',
    also: { find: 'import { abandonAttempt, askNow } from', replace: 'import { askNow } from' },
    profiles: ['echo'],
  },
  {
    name: 'epoch-not-above-answers',
    rule: 10,
    what: 'the epoch is the wall clock alone, not above what others answered',
    file: 'src/singleton/manager_draft.ts',
    find: 'return Math.max(this.state.epochSeen + 1, this.state.epochStarted + 1, Math.floor(this.#wall));',
    replace: 'return Math.floor(this.#wall);',
  },
  {
    name: 'every-verdict-planned',
    rule: 11,
    what: 'a new host announces a planned move after a crash too',
    file: 'src/singleton/manager_becoming.ts',
    find: 'const plannedSince = previous ? previous.plannedSince : epoch;',
    replace: 'const plannedSince = previous ? previous.plannedSince : 0;',
  },
  {
    name: 'settled-by-membership',
    rule: 11,
    what: 'a proxy settles what it sent when it sees another host in its view, without the verdict of that host',
    file: 'src/singleton/proxy.ts',
    find: '    if (open) this.stream.closed();\n    if (host === undefined',
    replace: "    if (open) this.stream.renew('at-most-once');\n    if (host === undefined",
  },
];
