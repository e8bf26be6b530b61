/**
 * What is computed from all records of a state at once: their hash, their order by age, the ring. It is kept with the map,
 * and where a few records change it is carried over to the new map: a change costs a look at what changed, not at everybody.
 */
import { fastPaths } from '../fast_paths.ts';
import { addHashes, canonicalText, type Hash, hashText, subtractHash } from './canonical.ts';
import type { MemberRecord } from './gossip_state.ts';
import { compareAge, compareText } from './member.ts';
import { isActive } from './transitions.ts';

type Records = ReadonlyMap<string, MemberRecord>;

export class RecordIndex {
  #records: Records;
  #hash: Hash | undefined;
  #byAge: readonly MemberRecord[] | undefined;
  #ring: readonly string[] | undefined;

  constructor(records: Records, hash?: Hash, byAge?: readonly MemberRecord[], ring?: readonly string[]) {
    this.#records = records;
    this.#hash = hash;
    this.#byAge = byAge;
    this.#ring = ring;
  }

  /** The sum of the hashes of all records. */
  get hash(): Hash {
    return this.#hash ??= [...this.#records.values()].map(recordHash).reduce(addHashes, [0, 0]);
  }

  get byAge(): readonly MemberRecord[] {
    return this.#byAge ??= [...this.#records.values()].sort(compareAge);
  }

  /** Active uids in the order of their texts. The same object as long as these are the same. */
  get ring(): readonly string[] {
    return this.#ring ??= [...this.#records.values()].filter(({ status }) => isActive(status)).map(({ uid }) => uid)
      .sort(compareText);
  }

  /** Of `records`, which differ in these uids. What was not asked for here is not made there. */
  carriedTo(records: Records, changed: readonly string[]): RecordIndex {
    let [hash, byAge, ring] = [this.#hash, this.#byAge, this.#ring];
    for (const uid of changed) {
      const [old, now] = [this.#records.get(uid), records.get(uid)];
      if (old === now) continue;
      if (hash !== undefined && old !== undefined) hash = subtractHash(hash, recordHash(old));
      if (hash !== undefined && now !== undefined) hash = addHashes(hash, recordHash(now));
      byAge &&= replacedIn(byAge, old, now, compareAge);
      ring &&= ringWith(ring, old, now);
    }
    return new RecordIndex(records, hash, byAge, ring);
  }
}

const indexes = new WeakMap<Records, RecordIndex>();
const hashes = new WeakMap<MemberRecord, Hash>();
/** More changes than one in so many records are not worth carrying over. */
const carriedOneOf = 8;

/** Of a map that does not change any more. */
export function indexOf(records: Records): RecordIndex {
  let index = indexes.get(records);
  if (index === undefined || !fastPaths.memos) indexes.set(records, index = new RecordIndex(records));
  return index;
}

/** `after` is `before`, but for the records of these uids, each named once. */
export function carryIndex(before: Records, after: Records, changed: readonly string[]): void {
  const index = indexes.get(before);
  if (index === undefined || !fastPaths.carriedIndex || changed.length * carriedOneOf > after.size) return;
  indexes.set(after, index.carriedTo(after, changed));
}

function ringWith(ring: readonly string[], old: MemberRecord | undefined, now: MemberRecord | undefined) {
  const [was, is] = [old, now].map((record) =>
    record !== undefined && isActive(record.status) ? record.uid : undefined
  );
  return was === is ? ring : replacedIn(ring, was, is, compareText);
}

/** In order by `compare`, which no two items are equal in. */
function replacedIn<T>(
  items: readonly T[],
  old: T | undefined,
  now: T | undefined,
  compare: (a: T, b: T) => number,
): readonly T[] {
  const next = items.slice();
  if (old !== undefined) {
    const at = placeOf(next, old, compare);
    if (now !== undefined && compare(old, now) === 0) {
      next[at] = now;
      return next;
    }
    next.splice(at, 1);
  }
  if (now !== undefined) next.splice(placeOf(next, now, compare), 0, now);
  return next;
}

/** Where the first item stands that is not before `item`. */
function placeOf<T>(items: readonly T[], item: T, compare: (a: T, b: T) => number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(items[middle] as T, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function recordHash(record: MemberRecord): Hash {
  let hash = hashes.get(record);
  if (hash === undefined || !fastPaths.memos) {
    const { uid, status, upNumber, terminated, selfVersion } = record;
    hash = hashText(`${canonicalText([uid, status, upNumber, terminated, selfVersion])}${selfText(record)}`);
    hashes.set(record, hash);
  }
  return hash;
}

/** What the member says about itself, as text. */
export function selfText(record: MemberRecord): string {
  const { address, roles, runtime, appVersion, started, hosting } = record;
  return canonicalText([address, roles, runtime, appVersion, started, hosting]);
}
