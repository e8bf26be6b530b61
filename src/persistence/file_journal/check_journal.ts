/** Looks at a directory of file stores and says what is wrong, without changing anything unless it is asked to. */
import { StoreDamagedError } from '../mod.ts';
import { DirectoryLock } from './directory_lock.ts';
import { type FileSystem, readFile, replaceFile } from './file_system.ts';
import { type FileWorld, usedEpoch } from './file_stores.ts';
import { type CutTail, loadLog } from './log_files.ts';
import { decodeManifest, encodeManifest, manifestEpoch, manifestName, segmentName } from './manifest.ts';
import { decodeRecord } from './record.ts';
import { scanSegment } from './segment_format.ts';

/** What `checkJournal` found in one log. */
export interface JournalReport {
  /** Of the logs: `journal` for events, `state` for durable states. */
  readonly log: 'journal' | 'state';
  readonly segments: number;
  readonly records: number;
  readonly ids: number;
  /** What opening it would cut off: remains of writes that were never acknowledged. */
  readonly cut: readonly CutTail[];
  /** Why it cannot be opened; undefined when it can. */
  readonly damage: StoreDamagedError | undefined;
  /** What `repairJournal` would give up so that it can be opened; undefined when there is nothing that it could do. */
  readonly wouldDrop: Drop | undefined;
}

/** What a repair gives up. */
export interface Drop {
  readonly path: string;
  /** Everything from here on in this file goes. */
  readonly position: number;
  readonly bytes: number;
  /** Events that can still be read behind the damage and would go with it, as `id: from-to`. */
  readonly readableEvents: readonly string[];
}

/** @throws StorageError when the directory cannot be read */
export async function checkJournal(system: FileSystem, directory: string): Promise<readonly JournalReport[]> {
  const reports: JournalReport[] = [];
  for (const log of ['journal', 'state'] as const) {
    if ((await system.list(directory)).includes(log)) reports.push(await checkLog(system, directory, log));
  }
  return reports;
}

/**
 * Gives up what `checkJournal` says in `wouldDrop`, for each log that has it, and answers that. The bytes are kept beside,
 * in a file `SEGMENT.POSITION.dropped`.
 * @throws StoreLockedError while somebody has the directory open
 */
export async function repairJournal({ system, lockWorld }: FileWorld, directory: string): Promise<readonly Drop[]> {
  const lock = await DirectoryLock.take(system, directory, lockWorld, await usedEpoch(system, directory));
  try {
    const drops: Drop[] = [];
    for (const { wouldDrop, log } of await checkJournal(system, directory)) {
      if (wouldDrop === undefined) continue;
      await drop(system, `${directory}/${log}`, wouldDrop);
      drops.push(wouldDrop);
    }
    return drops;
  } finally {
    await lock.release();
  }
}

async function checkLog(system: FileSystem, directory: string, log: 'journal' | 'state'): Promise<JournalReport> {
  try {
    const { index, segments, records, cut } = await loadLog(system, `${directory}/${log}`);
    return {
      log,
      segments: segments.length,
      records,
      ids: index.heads.size,
      cut,
      damage: undefined,
      wouldDrop: undefined,
    };
  } catch (error) {
    if (!(error instanceof StoreDamagedError)) throw error;
    const wouldDrop = await findDrop(system, error);
    return { log, segments: 0, records: 0, ids: 0, cut: [], damage: error, wouldDrop };
  }
}

/** Damage inside of a segment can be given up together with the rest of that file; damage elsewhere cannot be mended here. */
async function findDrop(system: FileSystem, { path, position }: StoreDamagedError): Promise<Drop | undefined> {
  const number = /(\d{10})\.seg$/.exec(path)?.[1];
  const bytes = number === undefined ? undefined : await readFile(system, path);
  if (bytes === undefined || position === 0 || position >= bytes.length) return undefined;
  return {
    path,
    position,
    bytes: bytes.length - position,
    readableEvents: eventsBehind(bytes, position, Number(number)),
  };
}

function eventsBehind(bytes: Uint8Array, position: number, segment: number): string[] {
  const found = new EventRanges();
  // The rest, behind a good header, read as if it began with each next good frame.
  const header = bytes.slice(0, 16);
  let rest = bytes.subarray(position);
  for (;;) {
    const next = /good record follows at byte (\d+)/.exec(rescan(header, rest, segment));
    if (next === null) return found.texts();
    rest = rest.subarray(Number(next[1]) - header.length);
    const joined = join(header, rest);
    const scanned = scanSegment(joined, segment, false);
    for (const body of scanned.bodies) {
      const record = decodeRecord(joined.subarray(body.position, body.position + body.length));
      if (record.kind !== 'events') continue;
      found.add(record.id, record.firstSeq, record.firstSeq + record.events.length - 1);
    }
    rest = rest.subarray(scanned.end - header.length);
  }
}

/** Numbers of events, in the order in which they are found; what goes on where the last of the same id ended is one range. */
class EventRanges {
  readonly #ranges: { readonly id: string; readonly first: number; last: number }[] = [];
  readonly #open = new Map<string, { last: number }>();

  add(id: string, first: number, last: number): void {
    const open = this.#open.get(id);
    if (open?.last === first - 1) {
      open.last = last;
      return;
    }
    const range = { id, first, last };
    this.#ranges.push(range);
    this.#open.set(id, range);
  }

  texts(): string[] {
    return this.#ranges.map(({ id, first, last }) => `${id}: ${first}-${last}`);
  }
}

function rescan(header: Uint8Array, rest: Uint8Array, segment: number): string {
  const { rest: end } = scanSegment(join(header, rest), segment, false);
  return end.kind === 'damaged' ? end.detail : '';
}

function join(header: Uint8Array, rest: Uint8Array): Uint8Array {
  const joined = new Uint8Array(header.length + rest.length);
  joined.set(header);
  joined.set(rest, header.length);
  return joined;
}

async function drop(system: FileSystem, directory: string, { path, position }: Drop): Promise<void> {
  const bytes = await readFile(system, path) as Uint8Array;
  const name = path.slice(directory.length + 1);
  await replaceFile(system, directory, `${name}.${position}.dropped`, bytes.subarray(position));
  const epoch = Math.max(0, ...(await system.list(directory)).flatMap((name) => manifestEpoch(name) ?? []));
  const manifestPath = `${directory}/${manifestName(epoch)}`;
  const manifest = decodeManifest(manifestPath, await readFile(system, manifestPath) as Uint8Array);
  const segments = manifest.segments.map((segment) =>
    segmentName(segment.number) === name ? { ...segment, sealedAt: position } : segment
  );
  await replaceFile(system, directory, manifestName(epoch), encodeManifest({ ...manifest, segments }));
}
