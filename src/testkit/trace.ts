/**
 * What a run did, as a 64-bit hash (two runs are equal when their hashes are) and as the last events per node for people.
 * The hash mixes like MurmurHash3's 32-bit body, in two lanes with different constants.
 */

/** One thing that happened in a run. */
export interface TraceEntry {
  readonly time: number;
  readonly node: string;
  readonly kind: string;
  /** Formatted only when somebody reads it. */
  readonly detail: string | (() => string);
}

const scratch = new DataView(new ArrayBuffer(8));

/** What happened in a run: a hash over everything, and the last entries of each node. */
export class Trace {
  #high = 0x6a09e667;
  #low = 0xbb67ae85;
  #rings = new Map<string, Ring>();
  #kept: number;
  #count = 0;
  /** Observers see each entry as it is recorded (verbose runs). */
  onEntry: ((entry: TraceEntry) => void) | undefined;

  /** `keptPerNode`: how many entries of each node are kept for reports. */
  constructor(keptPerNode = 400) {
    this.#kept = keptPerNode;
  }

  /** Number of entries recorded so far. */
  get count(): number {
    return this.#count;
  }

  /** Mixes one 32-bit integer into the hash. */
  mix(value: number): void {
    let k = Math.imul(value, 0xcc9e2d51);
    k = (k << 15) | (k >>> 17);
    this.#high ^= Math.imul(k, 0x1b873593);
    this.#high = (Math.imul((this.#high << 13) | (this.#high >>> 19), 5) + 0xe6546b64) | 0;
    let m = Math.imul(value ^ this.#high, 0x85ebca6b);
    m = (m << 17) | (m >>> 15);
    this.#low ^= Math.imul(m, 0xc2b2ae35);
    this.#low = (Math.imul((this.#low << 11) | (this.#low >>> 21), 9) + 0x52dce729) | 0;
  }

  mixFloat(value: number): void {
    scratch.setFloat64(0, value);
    this.mix(scratch.getInt32(0));
    this.mix(scratch.getInt32(4));
  }

  mixText(text: string): void {
    this.mix(text.length);
    for (let i = 0; i < text.length; i++) this.mix(text.charCodeAt(i));
  }

  mixBytes(bytes: Uint8Array): void {
    this.mix(bytes.length);
    let word = 0;
    for (let i = 0; i < bytes.length; i++) {
      word = (word << 8) | (bytes[i] as number);
      if ((i & 3) === 3) this.mix(word);
    }
    this.mix(word);
  }

  /** Keeps an entry for the report. Whatever should count for equality of runs is mixed by the caller. */
  note(time: number, node: string, kind: string, detail: string | (() => string)): void {
    const entry: TraceEntry = { time, node, kind, detail };
    let ring = this.#rings.get(node);
    if (ring === undefined) this.#rings.set(node, ring = { entries: [], next: 0 });
    if (ring.entries.length < this.#kept) ring.entries.push(entry);
    else ring.entries[ring.next] = entry;
    ring.next = (ring.next + 1) % this.#kept;
    this.#count++;
    this.onEntry?.(entry);
  }

  /** Shows an entry to the observer only: for what is too frequent to keep. */
  show(time: number, node: string, kind: string, detail: () => string): void {
    this.onEntry?.({ time, node, kind, detail });
  }

  /** 16 hex digits. */
  hash(): string {
    return hex(this.#high) + hex(this.#low);
  }

  /** The kept entries by time; of one node, or of all. */
  entries(node?: string): TraceEntry[] {
    const rings = node === undefined ? [...this.#rings.values()] : [this.#rings.get(node)];
    const result: TraceEntry[] = [];
    for (const ring of rings) {
      if (ring === undefined) continue;
      const full = ring.entries.length === this.#kept;
      result.push(...(full ? [...ring.entries.slice(ring.next), ...ring.entries.slice(0, ring.next)] : ring.entries));
    }
    return result.sort((a, b) => a.time - b.time);
  }
}

interface Ring {
  readonly entries: TraceEntry[];
  next: number;
}

/** One line of a trace, for people. */
export function formatEntry(entry: TraceEntry): string {
  let detail: string;
  try {
    detail = typeof entry.detail === 'string' ? entry.detail : entry.detail();
  } catch (error) {
    detail = `(not printable: ${String(error)})`;
  }
  return `${entry.time.toFixed(3).padStart(12)} ${entry.node.padEnd(6)} ${entry.kind.padEnd(10)} ${detail}`;
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0');
}
