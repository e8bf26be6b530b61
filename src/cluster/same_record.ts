/** Are two member records the same data? Answered without building texts: nearly every record that gossip brings is known. */
import type { GossipState, MemberRecord } from './gossip_state.ts';

/** What the member says about itself; the order of map entries does not matter. */
export function sameSelf(a: MemberRecord, b: MemberRecord): boolean {
  return a === b ||
    (a.address === b.address && a.runtime === b.runtime && a.appVersion === b.appVersion &&
      a.roles.length === b.roles.length && a.roles.every((role, index) => role === b.roles[index]) &&
      sameMap(a.started, b.started, (x, y) => x.generation === y.generation && x.role === y.role) &&
      sameMap(
        a.hosting,
        b.hosting,
        (x, y) => x.epoch === y.epoch && x.plannedSince === y.plannedSince && x.since === y.since,
      ));
}

export function sameRecord(a: MemberRecord, b: MemberRecord): boolean {
  return a === b ||
    (a.uid === b.uid && a.status === b.status && a.upNumber === b.upNumber && a.terminated === b.terminated &&
      a.selfVersion === b.selfVersion && sameSelf(a, b));
}

/** `theirs` with the objects of `mine` in place of equal ones: whatever was computed for those need not be again. */
export function withKnownRecords(theirs: GossipState, mine: GossipState): GossipState {
  const records = new Map<string, MemberRecord>();
  for (const [uid, record] of theirs.records) {
    const known = mine.records.get(uid);
    records.set(uid, known !== undefined && sameRecord(known, record) ? known : record);
  }
  return { ...theirs, records };
}

function sameMap<T>(
  a: ReadonlyMap<string, T>,
  b: ReadonlyMap<string, T>,
  same: (x: T, y: T) => boolean,
): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    const other = b.get(key);
    if (other === undefined || (other !== value && !same(value, other))) return false;
  }
  return true;
}
