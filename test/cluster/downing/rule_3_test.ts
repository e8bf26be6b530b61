/** Rule 3 by enumeration: what a side decides holds under every completion of the steps that are pending. */
import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import fc from 'fast-check';
import {
  DownAll,
  type DowningStrategy,
  KeepMajority,
  KeepOldest,
  KeepReferee,
  StaticQuorum,
} from '../../../src/cluster/downing/mod.ts';
import { compareAge, type Member, type MemberStatus } from '../../../src/cluster/member.ts';
import { member } from './members.ts';

/** Does `side` win if `voters` are what they are, with nothing pending? Written without regard to the product's code. */
type Wins = (voters: readonly Member[], side: ReadonlySet<string>) => boolean;

interface Subject {
  readonly strategy: DowningStrategy;
  readonly wins: Wins;
  readonly role?: string;
}

const isIn = (side: ReadonlySet<string>) => (one: Member): boolean => one.status !== 'down' && side.has(one.uid);

function halves(voters: readonly Member[], side: ReadonlySet<string>): { inside: number; outside: number } {
  const inside = voters.filter(isIn(side)).length;
  return { inside, outside: voters.length - inside };
}

const majority: Wins = (voters, side) => {
  const { inside, outside } = halves(voters, side);
  const [oldest] = voters;
  return inside > outside || (inside === outside && oldest !== undefined && isIn(side)(oldest));
};

const oldestWins = (downIfAlone: boolean): Wins => (voters, side) => {
  const [oldest] = voters;
  if (oldest === undefined) return false;
  const { inside, outside } = halves(voters, side);
  if (isIn(side)(oldest)) return !downIfAlone || inside > 1 || outside <= 1;
  return downIfAlone && outside === 1 && inside > 1;
};

const refereeAddress = member('B', 'up', 1).address;

const subjects: readonly Subject[] = [
  { strategy: new KeepMajority(), wins: majority },
  { strategy: new KeepMajority({ role: 'db' }), wins: majority, role: 'db' },
  { strategy: new KeepOldest(), wins: oldestWins(true) },
  { strategy: new KeepOldest({ role: 'db' }), wins: oldestWins(true), role: 'db' },
  { strategy: new KeepOldest({ downIfAlone: false }), wins: oldestWins(false) },
  ...[1, 2, 3].map((quorum): Subject => ({
    strategy: new KeepReferee({ refereeAddress, downAllIfBelowQuorum: quorum }),
    wins: (voters, side) =>
      voters.some((one) => one.address === refereeAddress && isIn(side)(one)) && halves(voters, side).inside >= quorum,
  })),
  ...[1, 2, 3, 4].map((quorumSize): Subject => ({
    strategy: new StaticQuorum({ quorumSize }),
    wins: (voters, side) => {
      const { inside, outside } = halves(voters, side);
      return inside >= quorumSize && (quorumSize * 2 > voters.length || inside > outside);
    },
  })),
  { strategy: new DownAll(), wins: () => false },
];

const maybeStatus = fc.constantFrom<MemberStatus>('joining', 'up', 'up', 'up', 'leaving', 'exiting', 'down');
const memberSeed = fc.record({
  status: maybeStatus,
  db: fc.boolean(),
  terminated: fc.boolean(),
  numbered: fc.boolean(),
});

/** Up to six members A, B, …; ages follow the letters, addresses go against them. */
const anyMembers = fc.array(memberSeed, { minLength: 1, maxLength: 6 }).map((seeds) =>
  seeds.map(({ status, db, terminated, numbered }, at) => {
    const upNumber = status === 'joining' || (status === 'down' && !numbered) ? 0 : at + 1;
    const roles = db ? ['db'] : [];
    return member(String.fromCharCode(65 + at), status, upNumber, {
      roles,
      terminated: status === 'down' && terminated,
    });
  }).toSorted(compareAge)
);

/** Every way in which `one` may turn out elsewhere: `undefined` when it is gone or does not count. */
function outcomes(one: Member): (Member | undefined)[] {
  if (one.status === 'down' && one.terminated) return [undefined];
  const promoted: Member = { ...one, upNumber: one.upNumber || 100 + one.uid.charCodeAt(0) };
  switch (one.status) {
    case 'joining':
      return [undefined, { ...promoted, status: 'up' }];
    case 'leaving':
    case 'exiting':
      return [one, undefined];
    case 'down':
      return one.upNumber === 0 ? [undefined, promoted] : [one];
    default:
      return [one];
  }
}

function* completions(members: readonly Member[]): Generator<readonly Member[]> {
  const [first, ...rest] = members;
  if (first === undefined) return yield [];
  for (const tail of completions(rest)) {
    for (const outcome of outcomes(first)) yield outcome === undefined ? tail : [outcome, ...tail];
  }
}

function everyCompletion({ wins, role }: Subject, members: readonly Member[], side: ReadonlySet<string>): boolean {
  const others = members.filter((one) => !isIn(side)(one) && !(one.status === 'down' && one.terminated));
  if (others.length === 0) return true;
  const voters = members.filter(({ roles }) => role === undefined || roles.includes(role));
  for (const completed of completions(voters)) if (!wins(completed.toSorted(compareAge), side)) return false;
  return true;
}

const runs = { numRuns: 1_000 };

for (const subject of subjects) {
  const { strategy } = subject;
  const title = `${strategy.name} ${JSON.stringify(strategy.parameters)}`;

  describe(`rule 3: ${title}`, () => {
    test('a side is kept exactly if it wins under every completion', () => {
      fc.assert(
        fc.property(anyMembers, fc.array(fc.boolean(), { minLength: 6, maxLength: 6 }), (members, inside) => {
          const side = new Set(members.filter((one, at) => inside[at] && one.status !== 'down').map(({ uid }) => uid));
          if (side.size === 0) return;
          assertEquals(strategy.keeps(members, side), everyCompletion(subject, members, side));
        }),
        runs,
      );
    });

    test('a kept side stays kept when it grows', () => {
      fc.assert(
        fc.property(anyMembers, fc.array(fc.nat(2), { minLength: 6, maxLength: 6 }), (members, when) => {
          const active = members.filter((one) => one.status !== 'down');
          const sideAt = (from: number) =>
            new Set(active.filter((_, at) => (when[at] ?? 0) >= from).map(({ uid }) => uid));
          if (strategy.keeps(members, sideAt(2))) assert(strategy.keeps(members, sideAt(1)));
        }),
        runs,
      );
    });

    test('of two to four sides that know of different steps at most one is kept, and decides accordingly', () => {
      fc.assert(
        fc.property(
          anyMembers,
          fc.integer({ min: 2, max: 4 }),
          anySides,
          anyHistory,
          (members, sides, sideOf, history) => {
            const kept: string[] = [];
            for (let at = 0; at < sides; at++) {
              const view = viewOf(members, history, at);
              const here = new Set(
                members.filter((_, i) => (sideOf[i] ?? 0) % sides === at).map(({ uid }) => uid),
              );
              const side = new Set(
                view.filter((one) => one.status !== 'down' && here.has(one.uid)).map(({ uid }) => uid),
              );
              const [selfUid] = side;
              if (selfUid === undefined) continue;
              const keeps = strategy.keeps(view, side);
              if (keeps) kept.push([...side].join(''));
              const unreachable = new Set(view.map(({ uid }) => uid).filter((uid) => !side.has(uid)));
              const decision = strategy.decide({ members: view, unreachable, selfUid });
              if (decision.size > 0) assertEquals(decision.has(selfUid), !keeps);
            }
            assert(kept.length <= 1, `kept: ${kept.join(' and ')}`);
          },
        ),
        runs,
      );
    });
  });
}

const maxMembers = 6;
const anySides = fc.array(fc.nat(3), { minLength: maxMembers, maxLength: maxMembers });

interface History {
  /** Members in the order in which they move one step on. */
  readonly steps: readonly number[];
  /** How many of the steps each side has heard of. */
  readonly heard: readonly number[];
}

const anyHistory: fc.Arbitrary<History> = fc.record({
  steps: fc.array(fc.nat(maxMembers - 1), { maxLength: 12 }),
  heard: fc.array(fc.nat(12), { minLength: 4, maxLength: 4 }),
});

/**
 * What one side may know of the steps that were under way at the cut. They have one history, since one leader makes them
 * and numbers members only while somebody is up; each side has heard a part of it.
 */
function viewOf(members: readonly Member[], { steps, heard }: History, side: number): readonly Member[] {
  const led = members.some(({ status }) => status === 'up');
  const view: (Member | undefined)[] = [...members];
  for (const [number, at] of steps.slice(0, heard[side]).entries()) {
    const one = view[at];
    if (one?.status === 'joining' && led) view[at] = { ...one, status: 'up', upNumber: 100 + number };
    else if (one?.status === 'leaving') view[at] = { ...one, status: 'exiting' };
    else if (one?.status === 'exiting' || one?.status === 'down') view[at] = undefined;
  }
  return view.filter((one) => one !== undefined).toSorted(compareAge);
}
