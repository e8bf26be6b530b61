/** Are two member records the same data? Answered without building texts: nearly every record that gossip brings is known. */
import type { GossipState, MemberRecord } from './gossip_state.ts';

type Own = Omit<MemberRecord, 'uid' | 'status' | 'upNumber' | 'terminated' | 'selfVersion'>;
type Same<T> = (a: T, b: T) => boolean;

/** A field of the record that is not compared here does not compile. */
const own: { readonly [Field in keyof Own]: Same<Own[Field]> } = {
  address: Object.is,
  runtime: Object.is,
  appVersion: Object.is,
  roles: (a, b) => a.length === b.length && a.every((role, index) => role === b[index]),
  started: sameMap,
  hosting: sameMap,
};

/** What the member says about itself; the order of map entries does not matter. */
export function sameSelf(a: MemberRecord, b: MemberRecord): boolean {
  return a === b ||
    (own.address(a.address, b.address) && own.runtime(a.runtime, b.runtime) &&
      own.appVersion(a.appVersion, b.appVersion) && own.roles(a.roles, b.roles) &&
      own.started(a.started, b.started) && own.hosting(a.hosting, b.hosting));
}

export function sameRecord(a: MemberRecord, b: MemberRecord): boolean {
  return a === b ||
    (a.uid === b.uid && a.status === b.status && a.upNumber === b.upNumber && a.terminated === b.terminated &&
      a.selfVersion === b.selfVersion && sameSelf(a, b));
}

/** `theirs` with the objects of `mine` in place of equal ones, all of them where all are equal: whatever was computed for those need not be again. */
export function withKnownRecords(theirs: GossipState, mine: GossipState): GossipState {
  const records = new Map<string, MemberRecord>();
  let same = 0;
  for (const [uid, record] of theirs.records) {
    const known = mine.records.get(uid);
    const isKnown = known !== undefined && sameRecord(known, record);
    if (isKnown) same++;
    records.set(uid, isKnown ? known : record);
  }
  return { ...theirs, records: same === records.size && same === mine.records.size ? mine.records : records };
}

/** Maps of flat records. */
function sameMap<T extends object>(a: ReadonlyMap<string, T>, b: ReadonlyMap<string, T>): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [key, value] of a) {
    const other = b.get(key);
    if (other === undefined || !sameFlat(value, other)) return false;
  }
  return true;
}

function sameFlat<T extends object>(a: T, b: T): boolean {
  if (a === b) return true;
  const keys = Object.keys(a) as (keyof T)[];
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
