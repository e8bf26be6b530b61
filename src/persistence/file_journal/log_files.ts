/** The files of a log: opening them after whatever happened, writing frames, sealing, dropping. */
import { StorageError, StoreDamagedError } from '../mod.ts';
import { type FileHandle, type FileSystem, readFile, replaceFile, writeAll } from './file_system.ts';
import { LogIndex } from './log_index.ts';
import {
  decodeManifest,
  encodeManifest,
  type Manifest,
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

export interface LoadedLog {
  readonly index: LogIndex;
  readonly segments: readonly { readonly number: number; readonly length: number }[];
  readonly cut: readonly CutTail[];
  /** Files of segments that are not part of the log: made or dropped just before a crash. */
  readonly strays: readonly number[];
  readonly records: number;
}

/**
 * Reads everything there is, and changes nothing.
 * @throws StoreDamagedError with the file and the position
 */
export async function loadLog(system: FileSystem, directory: string): Promise<LoadedLog> {
  const numbers = (await system.list(directory)).flatMap((name) => segmentNumber(name) ?? []).sort((a, b) => a - b);
  const manifest = await loadManifest(system, directory, numbers);
  const listed = new Set(manifest.segments.map((segment) => segment.number));
  const strays = numbers.filter((number) => !listed.has(number));
  const newest = Math.max(0, ...listed);
  for (const number of strays) if (number > newest) await checkEmpty(system, directory, number);
  const index = new LogIndex();
  const segments: { number: number; length: number }[] = [];
  const cut: CutTail[] = [];
  let records = 0;
  for (const entry of manifest.segments) {
    const loaded = await loadSegment(system, directory, entry, index);
    segments.push({ number: entry.number, length: loaded.end });
    records += loaded.records;
    if (loaded.cut !== undefined) cut.push(loaded.cut);
  }
  for (const head of manifest.heads) index.apply(head, { segment: 0, position: 0, length: 0 });
  return { index, segments, cut, strays, records };
}

async function loadManifest(system: FileSystem, directory: string, numbers: readonly number[]): Promise<Manifest> {
  const path = `${directory}/${manifestName}`;
  const bytes = await readFile(system, path);
  if (bytes !== undefined) return decodeManifest(path, bytes);
  for (const number of numbers) await checkEmpty(system, directory, number);
  return { segments: [], heads: [] };
}

/** A segment that no manifest names may exist only without content: its making was cut off. */
async function checkEmpty(system: FileSystem, directory: string, number: number): Promise<void> {
  const path = `${directory}/${segmentName(number)}`;
  const bytes = await readFile(system, path);
  if (bytes === undefined || bytes.length <= segmentHeaderBytes) return;
  throw new StoreDamagedError(path, 0, `it has content, and ${manifestName} is missing or does not name it`);
}

async function loadSegment(
  system: FileSystem,
  directory: string,
  { number, sealedAt }: SegmentEntry,
  index: LogIndex,
): Promise<{ end: number; records: number; cut: CutTail | undefined }> {
  const path = `${directory}/${segmentName(number)}`;
  const all = await readFile(system, path);
  if (all === undefined) throw new StoreDamagedError(path, 0, `${manifestName} names it, and it is missing`);
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
  const detail = scanned.rest.kind === 'torn' ? scanned.rest.detail : 'written after the file was sealed';
  const extra = all.length - scanned.end;
  const cut = extra === 0 ? undefined : { path, position: scanned.end, bytes: extra, detail };
  return { end: scanned.end, records: scanned.bodies.length, cut };
}

/** The segment that is written to, and the list of all. Used by one caller at a time. */
export class LogFiles {
  readonly #system: FileSystem;
  readonly #directory: string;
  readonly index: LogIndex;
  #sealed: { readonly number: number; readonly length: number }[];
  #active: { readonly number: number; readonly file: FileHandle } | undefined;
  #next: number;
  /** Bytes of the active segment that are durable. */
  #end = 0;
  /** A write has failed, and what it left must be cut off before the next. */
  #dirty = false;
  /** A new segment is made, and it is not known whether the manifest names it. */
  #unsettled = false;

  constructor(system: FileSystem, directory: string, loaded: LoadedLog) {
    this.#system = system;
    this.#directory = directory;
    this.index = loaded.index;
    this.#sealed = [...loaded.segments];
    this.#next = Math.max(0, ...loaded.segments.map((segment) => segment.number), ...loaded.strays) + 1;
  }

  get activeBytes(): number {
    return this.#end;
  }

  /** Begins a segment of its own, so that a writer from before, should there be one, touches nothing of this one's. */
  async begin(strays: readonly number[], cut: readonly CutTail[]): Promise<void> {
    this.#sealed = this.#sealed.filter(({ number, length }) => {
      if (length > segmentHeaderBytes) return true;
      strays = [...strays, number];
      return false;
    });
    await this.roll();
    for (const number of strays) await this.#system.remove(`${this.#directory}/${segmentName(number)}`);
    for (const { path, position } of cut) {
      const file = await this.#system.open(path, 'write').catch(() => undefined);
      await file?.truncate(position).then(() => file.sync()).catch(() => {});
      await file?.close();
    }
    await this.dropDead();
  }

  /** Appends one frame and waits until it is durable; gives the segment and where the bodies are. */
  async write(
    bodies: readonly Uint8Array[],
  ): Promise<{ readonly segment: number; readonly positions: readonly number[] }> {
    if (this.#unsettled) await this.#settle();
    const active = this.#active;
    if (active === undefined) throw new StorageError(`${this.#directory} is closed`);
    if (this.#dirty) await this.#clean(active.file);
    const { bytes, bodyPositions } = encodeFrame(active.number, bodies);
    const at = this.#end;
    try {
      await writeAll(active.file, bytes, at);
      await active.file.sync();
    } catch (error) {
      this.#dirty = true;
      await this.#clean(active.file).catch(() => {});
      throw error;
    }
    this.#end += bytes.length;
    return { segment: active.number, positions: bodyPositions.map((position) => at + position) };
  }

  /** Seals the active segment and begins the next. When this throws, the next write tries to settle it. */
  async roll(): Promise<void> {
    if (this.#unsettled) return this.#settle();
    if (this.#dirty && this.#active !== undefined) await this.#clean(this.#active.file);
    const number = this.#next;
    const path = `${this.#directory}/${segmentName(number)}`;
    const header = segmentHeader(number);
    await this.#system.remove(path);
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
    this.#end = header.length;
    this.#next = number + 1;
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

  async #clean(file: FileHandle): Promise<void> {
    await file.truncate(this.#end);
    await file.sync();
    this.#dirty = false;
  }

  #writeManifest(): Promise<void> {
    const segments: SegmentEntry[] = this.#sealed.map(({ number, length }) => ({ number, sealedAt: length }));
    if (this.#active !== undefined) segments.push({ number: this.#active.number, sealedAt: undefined });
    const bytes = encodeManifest({ segments, heads: this.index.headRecords() });
    return replaceFile(this.#system, this.#directory, manifestName, bytes);
  }
}
