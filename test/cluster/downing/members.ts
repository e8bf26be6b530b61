/** Members and splits for table tests, written as short texts. */
import type { DowningStrategy } from '../../../src/cluster/downing/contract.ts';
import { compareAge, type Member, type MemberStatus } from '../../../src/cluster/member.ts';

const statuses: Readonly<Record<string, MemberStatus>> = {
  '': 'up',
  j: 'joining',
  l: 'leaving',
  e: 'exiting',
  d: 'down',
  t: 'down',
};

export function member(uid: string, status: MemberStatus, upNumber: number, more: Partial<Member> = {}): Member {
  return {
    address: `10.0.0.${200 - uid.charCodeAt(0)}:4000`,
    uid,
    status,
    roles: [],
    upNumber,
    runtime: 'node',
    appVersion: '',
    terminated: false,
    reachable: true,
    started: new Map(),
    hosting: new Map(),
    ...more,
  };
}

/**
 * `A Bj Cl@db`: one letter names a member, in age order and against address order; then its status (none: up, j joining,
 * l leaving, e exiting, d down, t down and proven dead), then its roles.
 */
export function membersOf(text: string): readonly Member[] {
  const members = text.split(' ').map((word, at) => {
    const [, uid = '', status = '', role] = /^([A-Z])([jledt]?)(?:@(\w+))?$/.exec(word) ?? [];
    const upNumber = status === 'j' ? 0 : at + 1;
    const roles = role === undefined ? [] : [role];
    return member(uid, statuses[status] ?? 'up', upNumber, { roles, terminated: status === 't' });
  });
  return members.toSorted(compareAge);
}

/** Who lives on after all sides of `split` (`AB|CDE`) have decided; `broken` (`A-B,C-D`) are links broken inside a side. */
export function survivors(strategy: DowningStrategy, members: readonly Member[], split: string, broken = ''): string {
  const ends = new Set(broken.split(/[-,]/).filter((uid) => uid !== ''));
  const alive: string[] = [];
  for (const side of split.split('|').map((uids) => [...uids])) {
    const unreachable = new Set(members.map(({ uid }) => uid).filter((uid) => !side.includes(uid)));
    const indirectlyConnected = new Set(side.filter((uid) => ends.has(uid)));
    for (const uid of indirectlyConnected) unreachable.add(uid);
    const decisions = side.map((selfUid) =>
      [...strategy.decide({ members, unreachable, indirectlyConnected, selfUid })].sort().join('')
    );
    const [decision = ''] = decisions;
    if (decisions.some((other) => other !== decision)) throw new Error(`side ${side}: ${decisions.join(' ≠ ')}`);
    alive.push(...side.filter((uid) => !decision.includes(uid)));
  }
  return alive.sort().join('');
}
