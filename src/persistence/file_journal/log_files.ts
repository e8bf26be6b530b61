/** The files of a log: opening them after whatever happened, writing frames, sealing, dropping. */
import { StorageError, StoreDamagedError } from '../mod.ts';
import { type FileHandle, type FileSystem, readFile, readListed, replaceFile, writeAll } from './file_system.ts';
import { LogIndex } from './log_index.ts';
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
  manifestEpoch,
  manifestName,
  type SegmentEntry,
  segmentName,
  segmentNumber,
} from './manifest.ts';
import { decodeRecord } from './record.ts';
import { encodeFrame, scanSegment, segmentHeader, segmentHeaderBytes } from './segment_format.ts';

/** Bytes at the end of a file that are not part of the log. */
export interface CutTail {
  readonly path: string;
  readonly position: number;
  readonly bytes: number;
  readonly detail: string;
}

export interface LoadedSegment {
  readonly number: number;
  readonly length: number;
  /** The end of a segment that is not sealed: it can be read, and need not be durable. */
  readonly doubtful: { readonly position: number; readonly bytes: Uint8Array } | undefined;
}

export interface LoadedLog {
  readonly index: LogIndex;
  readonly segments: readonly LoadedSegment[];
  readonly cut: readonly CutTail[];
  /** Files of segments that are not part of the log: made or dropped just before a crash. */
  readonly strays: readonly number[];
  readonly records: number;
  /** Of the manifest that counts; −1 without one. */
  readonly epoch: number;
}

/**
 * Reads everything there is, and changes nothing.
 * @throws StoreDamagedError with the file and the position
 */
export async function loadLog(system: FileSystem, directory: string): Promise<LoadedLog> {
  const names = await system.list(directory);
  const numbers = names.flatMap((name) => segmentNumber(name) ?? []).sort((a, b) => a - b);
  const epoch = Math.max(-1, ...names.flatMap((name) => manifestEpoch(name) ?? []));
  const manifest = await loadManifest(system, directory, epoch, numbers);
  const listed = new Set(manifest.segments.map((segment) => segment.number));
  const strays = numbers.filter((number) => !listed.has(number));
  const newest = Math.max(0, ...listed);
  for (const number of strays) if (number > newest) await checkEmpty(system, directory, number);
  const index = new LogIndex();
  const segments: LoadedSegment[] = [];
  const cut: CutTail[] = [];
  let records = 0;
  for (const entry of manifest.segments) {
    const loaded = await loadSegment(system, directory, entry, index);
    segments.push({ number: entry.number, length: loaded.end, doubtful: loaded.doubtful });
    records += loaded.records;
    if (loaded.cut !== undefined) cut.push(loaded.cut);
  }
  for (const head of manifest.heads) index.apply(head, { segment: 0, position: 0, length: 0 });
  return { index, segments, cut, strays, records, epoch };
}

async function loadManifest(
  system: FileSystem,
  directory: string,
  epoch: number,
  numbers: readonly number[],
): Promise<Manifest> {
  if (epoch >= 0) {
    const path = `${directory}/${manifestName(epoch)}`;
    const bytes = await readFile(system, path);
    if (bytes !== undefined) return decodeManifest(path, bytes);
    throw new StorageError(`cannot open ${path}: it was there a moment ago (ENOENT)`, 'ENOENT');
  }
  for (const number of numbers) await checkEmpty(system, directory, number);
  return { segments: [], heads: [] };
}

/** A segment that no manifest names may exist only without content: its making was cut off. */
async function checkEmpty(system: FileSystem, directory: string, number: number): Promise<void> {
  const path = `${directory}/${segmentName(number)}`;
  const bytes = await readFile(system, path);
  if (bytes === undefined || bytes.length <= segmentHeaderBytes) return;
  throw new StoreDamagedError(path, 0, `it has content, and no manifest names it`);
}

async function loadSegment(
  system: FileSystem,
  directory: string,
  { number, sealedAt }: SegmentEntry,
  index: LogIndex,
): Promise<Pick<LoadedSegment, 'doubtful'> & { end: number; records: number; cut: CutTail | undefined }> {
  const path = `${directory}/${segmentName(number)}`;
  const all = await readListed(system, directory, segmentName(number));
  if (all === undefined) throw new StoreDamagedError(path, 0, 'the manifest names it, and it is missing');
  if (sealedAt !== undefined && all.length < sealedAt) {
    throw new StoreDamagedError(path, all.length, `it ends here and should have ${sealedAt} bytes`);
  }
  const bytes = all.subarray(0, sealedAt);
  const scanned = scanSegment(bytes, number, sealedAt !== undefined);
  if (scanned.rest.kind === 'damaged') throw new StoreDamagedError(path, scanned.end, scanned.rest.detail);
  for (const { position, length } of scanned.bodies) {
    try {
      index.apply(decodeRecord(bytes.subarray(position, position + length)), { segment: number, position, length });
    } catch (error) {
      throw new StoreDamagedError(path, position, (error as Error).message);
    }
  }
  const detail = scanned.rest.kind === 'torn' ? scanned.rest.detail : '';
  // Behind the end of a sealed segment is what an earlier opening has left out already.
  const extra = sealedAt === undefined ? all.length - scanned.end : 0;
  const cut = extra === 0 ? undefined : { path, position: scanned.end, bytes: extra, detail };
  const { lastFrame: position, end } = scanned;
  const doubtful = sealedAt === undefined ? { position, bytes: bytes.slice(position, end) } : undefined;
  return { end, records: scanned.bodies.length, cut, doubtful };
}

/** The segment that is written to, and the list of all. Used by one caller at a time. */
export class LogFiles {
  readonly #system: FileSystem;
  readonly #directory: string;
  readonly index: LogIndex;
  #sealed: { readonly number: number; readonly length: number }[];
  #active: { readonly number: number; readonly file: FileHandle } | undefined;
  #next: number;
  /** Of the manifests that are written here. */
  readonly #epoch: number;
  /** Bytes of the active segment that are durable. */
  #end = 0;
  /**
   * A write has failed. What it left is shut out by the next segment's manifest, and not cut off: a successor that this owner
   * does not know of may have read it.
   */
  #dirty = false;
  /** A new segment is made, and it is not known whether the manifest names it. */
  #unsettled = false;

  /** `epoch`: of the lock, so that later owners have higher ones. */
  constructor(system: FileSystem, directory: string, loaded: LoadedLog, epoch: number) {
    this.#system = system;
    this.#directory = directory;
    this.#epoch = epoch;
    this.index = loaded.index;
    this.#sealed = [...loaded.segments];
    this.#next = Math.max(0, ...loaded.segments.map((segment) => segment.number), ...loaded.strays) + 1;
  }

  get activeBytes(): number {
    return this.#end;
  }

  /** Begins a segment of its own, so that a writer from before, should there be one, touches nothing of this one's. */
  async begin({ segments, strays: found, epoch }: LoadedLog): Promise<void> {
    if (epoch > this.#epoch) {
      throw new StorageError(
        `${this.#directory} has a manifest of epoch ${epoch}, later than this owner (${this.#epoch})`,
      );
    }
    let strays = found;
    for (const { number, doubtful } of segments) if (doubtful !== undefined) await this.#writeAgain(number, doubtful);
    this.#sealed = this.#sealed.filter(({ number, length }) => {
      if (length > segmentHeaderBytes) return true;
      strays = [...strays, number];
      return false;
    });
    await this.roll();
    for (const number of strays) await this.#system.remove(`${this.#directory}/${segmentName(number)}`);
    for (const name of await this.#system.list(this.#directory)) {
      const older = manifestEpoch(name);
      if (older !== undefined && older < this.#epoch) await this.#system.remove(`${this.#directory}/${name}`);
    }
    await this.dropDead();
  }

  /**
   * Appends one frame and waits until it is durable; gives the segment and where the bodies are. `check` runs once the frame
   * can be read by others, beside the sync; what it throws means that nobody may be told of the frame.
   */
  async write(
    bodies: readonly Uint8Array[],
    check: () => Promise<void>,
  ): Promise<{ readonly segment: number; readonly positions: readonly number[] }> {
    if (this.#unsettled) await this.#settle();
    if (this.#dirty) await this.roll();
    const active = this.#active;
    if (active === undefined) throw new StorageError(`${this.#directory} is closed`);
    const { bytes, bodyPositions } = encodeFrame(active.number, bodies);
    const at = this.#end;
    try {
      await writeAll(active.file, bytes, at);
      await Promise.all([active.file.sync(), check()]);
    } catch (error) {
      this.#dirty = true;
      throw error;
    }
    this.#end += bytes.length;
    return { segment: active.number, positions: bodyPositions.map((position) => at + position) };
  }

  /** Seals the active segment and begins the next. When this throws, the next write tries to settle it. */
  async roll(): Promise<void> {
    if (this.#unsettled) return this.#settle();
    // A number is used once: whatever is there under the next one belongs to another owner, or was made in vain.
    const number = this.#next++;
    const path = `${this.#directory}/${segmentName(number)}`;
    const header = segmentHeader(number);
    const file = await this.#system.open(path, 'create');
    try {
      await writeAll(file, header, 0);
      await file.sync();
      await this.#system.syncDirectory(this.#directory);
    } catch (error) {
      await file.close().catch(() => {});
      await this.#system.remove(path).catch(() => {});
      throw error;
    }
    const old = this.#active;
    if (old !== undefined) this.#sealed.push({ number: old.number, length: this.#end });
    this.#active = { number, file };
    this.#dirty = false;
    this.#end = header.length;
    await old?.file.close().catch(() => {});
    this.#unsettled = true;
    await this.#settle();
  }

  /** Removes sealed segments whose events have all been deleted. */
  async dropDead(): Promise<void> {
    const dead = this.#sealed.filter(({ number }) => (this.index.live.get(number) ?? 0) === 0);
    if (dead.length === 0) return;
    this.#sealed = this.#sealed.filter((segment) => !dead.includes(segment));
    for (const { number } of dead) this.index.dropSegment(number);
    await this.#writeManifest();
    for (const { number } of dead) await this.#system.remove(`${this.#directory}/${segmentName(number)}`);
  }

  openSegment(number: number): Promise<FileHandle> {
    return this.#system.open(`${this.#directory}/${segmentName(number)}`, 'read');
  }

  async close(): Promise<void> {
    const active = this.#active;
    this.#active = undefined;
    await active?.file.close();
  }

  async #settle(): Promise<void> {
    await this.#writeManifest();
    this.#unsettled = false;
  }

  /**
   * Whoever was killed between a write and its sync has left a frame that can be read and that a loss of power would take.
   * Written once more, since after a sync that failed the kernel takes it for written, and another sync would do nothing.
   */
  async #writeAgain(number: number, { position, bytes }: NonNullable<LoadedSegment['doubtful']>): Promise<void> {
    const file = await this.#system.open(`${this.#directory}/${segmentName(number)}`, 'write');
    try {
      await writeAll(file, bytes, position);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  #writeManifest(): Promise<void> {
    const segments: SegmentEntry[] = this.#sealed.map(({ number, length }) => ({ number, sealedAt: length }));
    if (this.#active !== undefined) segments.push({ number: this.#active.number, sealedAt: undefined });
    const bytes = encodeManifest({ segments, heads: this.index.headRecords() });
    return replaceFile(this.#system, this.#directory, manifestName(this.#epoch), bytes);
  }
}
