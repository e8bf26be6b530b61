/** Everything persistent actors need, in one directory of one machine. */
import { OptionsError } from '../../actor/options.ts';
import { checkNumber, type DurableStateStore, JournalDurableState } from '../mod.ts';
import type { Codec } from '../../wire/codec.ts';
import { DirectoryLock, type LockWorld } from './directory_lock.ts';
import { FileJournal } from './file_journal.ts';
import { FileSnapshotStore } from './file_snapshot_store.ts';
import type { FileSystem } from './file_system.ts';
import { manifestEpoch } from './manifest.ts';

/** Options of stores in a directory. All fields are optional. */
export interface FileStoresOptions {
  /** Snapshots kept for each id; 0 for all. Default 3. */
  readonly keepSnapshots?: number;
  /** A segment of the log that has grown to this is followed by a new one. Default 64 MiB. */
  readonly segmentBytes?: number;
  /** For classes of the user among events and states. */
  readonly codec?: Codec;
  /** Told of remains that were cut off and of tidying that failed. Default: nobody. */
  readonly onWarning?: (message: string) => void;
}

/** What the stores take from the world. */
export interface FileWorld {
  readonly system: FileSystem;
  readonly lockWorld: LockWorld;
}

/** The three stores of one directory, which belongs to this process until `close`. */
export interface FileStores {
  readonly journal: FileJournal;
  readonly snapshots: FileSnapshotStore;
  readonly durableState: DurableStateStore;
  /** Lets what is under way finish, and frees the directory. */
  close(): Promise<void>;
}

/** @throws OptionsError, StoreLockedError, StoreDamagedError, StorageError */
export async function openStores(
  { system, lockWorld }: FileWorld,
  directory: string,
  options: FileStoresOptions = {},
): Promise<FileStores> {
  if (typeof directory !== 'string' || directory === '') {
    throw new OptionsError('FileStores', 'directory', directory, 'must be a path');
  }
  const { keepSnapshots, segmentBytes, codec, onWarning } = options;
  if (keepSnapshots !== undefined) checkNumber('FileStoresOptions', 'keepSnapshots', keepSnapshots);
  if (segmentBytes !== undefined) checkNumber('FileStoresOptions', 'segmentBytes', segmentBytes, 1);
  await system.makeDirectory(directory);
  let lock: DirectoryLock | undefined;
  const opened: { close(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    for (const store of opened.splice(0)) await store.close();
    await lock?.release();
  };
  try {
    const taken = lock = await DirectoryLock.take(system, directory, lockWorld, await usedEpoch(system, directory));
    const common = {
      system,
      checkOwner: () => taken.check(),
      ...(codec === undefined ? {} : { codec }),
      ...(onWarning === undefined ? {} : { onWarning }),
    };
    const log = { ...common, epoch: taken.epoch, ...(segmentBytes === undefined ? {} : { segmentBytes }) };
    const journal = await FileJournal.open({ ...log, directory: `${directory}/journal` });
    opened.push(journal);
    const states = await FileJournal.open({ ...log, directory: `${directory}/state` });
    opened.push(states);
    const snapshots = await FileSnapshotStore.open({
      ...common,
      directory: `${directory}/snapshots`,
      ...(keepSnapshots === undefined ? {} : { keepN: keepSnapshots }),
    });
    opened.push(snapshots);
    await system.syncDirectory(directory);
    return { journal, snapshots, durableState: new JournalDurableState(states), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The highest epoch that any manifest in `directory` is of; 0 without one. */
export async function usedEpoch(system: FileSystem, directory: string): Promise<number> {
  const inside = await system.list(directory);
  const logs = ['journal', 'state'].filter((name) => inside.includes(name));
  const names = await Promise.all(logs.map((name) => system.list(`${directory}/${name}`)));
  return Math.max(0, ...names.flat().flatMap((name) => manifestEpoch(name) ?? []));
}
