/** What a log has, in memory: for each id its numbers and where its events are. */
import type { HeldClaim } from '../mod.ts';
import type { HeadRecord } from './manifest.ts';
import type { LogRecord } from './record.ts';

/** Where a record's body is. */
export interface Place {
  readonly segment: number;
  readonly position: number;
  readonly length: number;
}

const width = 5;

/** The places of one id's appends, in order of their numbers: 40 bytes each. */
class PlaceList {
  #fields = new Float64Array(4 * width);
  /** Those before it have been deleted. */
  #first = 0;
  #end = 0;

  get lastSeq(): number {
    return this.#end === this.#first ? 0 : this.#field(this.#end - 1, 1);
  }

  add(firstSeq: number, count: number, place: Place): void {
    if (this.#end * width === this.#fields.length) this.#grow();
    this.#fields.set([firstSeq, firstSeq + count - 1, place.segment, place.position, place.length], this.#end * width);
    this.#end += 1;
  }

  /** The first append that ends at or after `seq`. */
  find(seq: number): (Place & { readonly firstSeq: number; readonly lastSeq: number }) | undefined {
    let low = this.#first;
    let high = this.#end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#field(middle, 1) < seq) low = middle + 1;
      else high = middle;
    }
    if (low === this.#end) return undefined;
    const [firstSeq = 0, lastSeq = 0, segment = 0, position = 0, length = 0] = this.#fields.subarray(low * width);
    return { firstSeq, lastSeq, segment, position, length };
  }

  /** Forgets appends that end at or before `toSeq`, and tells their segments. */
  drop(toSeq: number, dropped: (segment: number) => void): void {
    while (this.#first < this.#end && this.#field(this.#first, 1) <= toSeq) {
      dropped(this.#field(this.#first, 2));
      this.#first += 1;
    }
  }

  #field(index: number, field: number): number {
    return this.#fields[index * width + field] as number;
  }

  #grow(): void {
    const kept = this.#fields.subarray(this.#first * width, this.#end * width);
    const next = new Float64Array(Math.max(4 * width, kept.length * 2));
    next.set(kept);
    this.#fields = next;
    this.#end -= this.#first;
    this.#first = 0;
  }
}

export interface Head {
  highestSeq: number;
  deletedTo: number;
  claim: HeldClaim | undefined;
  readonly places: PlaceList;
}

/** An event with a tag. */
export interface TaggedPlace extends Place {
  /** Which event of its append. */
  readonly index: number;
}

export class LogIndex {
  readonly heads = new Map<string, Head>();
  readonly tagged = new Map<string, TaggedPlace[]>();
  /** Appends that are not deleted, by segment. */
  readonly live = new Map<number, number>();

  head(id: string): Head {
    let head = this.heads.get(id);
    if (head === undefined) {
      head = { highestSeq: 0, deletedTo: 0, claim: undefined, places: new PlaceList() };
      this.heads.set(id, head);
    }
    return head;
  }

  /** Takes in what is durable. @throws RangeError when a number comes twice */
  apply(record: LogRecord, place: Place): void {
    const head = this.head(record.id);
    switch (record.kind) {
      case 'events':
        return this.#addEvents(head, record, place);
      case 'claim':
        if (head.claim === undefined || record.claim.epoch >= head.claim.epoch) head.claim = record.claim;
        return;
      case 'delete':
        return this.#delete(head, record.toSeq);
      case 'head':
        head.highestSeq = Math.max(head.highestSeq, record.highestSeq);
        if (record.claim !== undefined && (head.claim === undefined || record.claim.epoch >= head.claim.epoch)) {
          head.claim = record.claim;
        }
        return this.#delete(head, record.deletedTo);
      default:
        return record satisfies never;
    }
  }

  headRecords(): HeadRecord[] {
    return [...this.heads].map(([id, { highestSeq, deletedTo, claim }]) => ({
      kind: 'head',
      id,
      highestSeq,
      deletedTo,
      claim,
    }));
  }

  /** Forgets a segment that has nothing left. */
  dropSegment(segment: number): void {
    this.live.delete(segment);
    for (const [tag, places] of this.tagged) {
      const kept = places.filter((place) => place.segment !== segment);
      if (kept.length === 0) this.tagged.delete(tag);
      else if (kept.length < places.length) this.tagged.set(tag, kept);
    }
  }

  #addEvents(head: Head, record: Extract<LogRecord, { kind: 'events' }>, place: Place): void {
    const { firstSeq, events, id } = record;
    if (firstSeq <= head.places.lastSeq) {
      throw new RangeError(`event ${firstSeq} of '${id}' follows event ${head.places.lastSeq}`);
    }
    const lastSeq = firstSeq + events.length - 1;
    head.highestSeq = Math.max(head.highestSeq, lastSeq);
    if (lastSeq <= head.deletedTo) return;
    head.places.add(firstSeq, events.length, place);
    this.live.set(place.segment, (this.live.get(place.segment) ?? 0) + 1);
    for (const [index, { tags }] of events.entries()) {
      for (const tag of tags) {
        let places = this.tagged.get(tag);
        if (places === undefined) this.tagged.set(tag, places = []);
        places.push({ ...place, index });
      }
    }
  }

  #delete(head: Head, toSeq: number): void {
    head.deletedTo = Math.max(head.deletedTo, toSeq);
    head.highestSeq = Math.max(head.highestSeq, toSeq);
    head.places.drop(head.deletedTo, (segment) => this.live.set(segment, (this.live.get(segment) ?? 1) - 1));
  }
}
