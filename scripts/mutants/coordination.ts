/** Deliberate faults in leases (rules 16 to 18). */
import type { Mutant } from './mutant.ts';

const profiles = ['lease'];

export const coordinationMutants: readonly Mutant[] = [
  {
    name: 'no-fence-in-a-handler',
    rule: 16,
    what: 'what a running handler does after the loss is not fenced',
    file: 'src/singleton/instance.ts',
    find: 'fenced: () => this.#fenced || life.tenure?.held() === false,',
    replace: 'fenced: () => false,',
    profiles,
  },
  {
    name: 'suspend-not-noticed',
    rule: 16,
    what: 'wall time does not shorten a lease: a suspend goes unnoticed',
    file: 'src/coordination/holder_state.ts',
    find: 'return at.now < term.deadline && at.wall < term.wallDeadline &&',
    replace: 'return at.now < term.deadline || false &&',
    profiles,
  },
  {
    name: 'drained-after-lease-loss',
    rule: 16,
    what: 'an instance that has lost its lease goes on until its mailbox is empty',
    file: 'src/singleton/lease_keeper.ts',
    find: 'return this.#granted && this.lease.token === token;',
    replace: 'return token > 0;',
    profiles,
  },
  {
    name: 'restarted-voter-votes-at-once',
    rule: 17,
    what: 'a restarted voter does not wait for the longest term',
    file: 'src/coordination/quorum_voter.ts',
    find: 'this.#waitUntil = now + config.maxTtlMs * (1 + 2 * config.driftBound);',
    replace: 'this.#waitUntil = now;',
    profiles: ['amnesia'],
  },
  {
    name: 'term-from-the-answer',
    rule: 17,
    what: 'the holder counts its term from the answer, not from the sending of the request',
    file: 'src/coordination/holder.ts',
    find: '        const term = termOf(config, request.at);\n        // The clocks',
    replace: '        const term = termOf(config, this.#at);\n        // The clocks',
    profiles: ['amnesia'],
  },
  {
    name: 'minority-of-voters',
    rule: 17,
    what: 'one vote is enough',
    file: 'src/coordination/quorum_voter.ts',
    find: 'return Math.floor(voters / 2) + 1;',
    replace: 'return Math.min(1, voters);',
    profiles,
  },
  {
    name: 'denied-lease-not-asked-for-again',
    rule: 18,
    what: "nothing is scheduled for the expected end of the other's term",
    file: 'src/singleton/manager_becoming.ts',
    find: "  draft.setTimer('acquire', Math.min(retryInMs, soonMs, acquireRetryIntervalMs));",
    replace: '',
    profiles,
  },
];
