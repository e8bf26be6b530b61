/** The file stores on the files of this machine. */
import {
  checkJournal as check,
  type Drop,
  type FileStores,
  type FileStoresOptions as PureOptions,
  type FileSystem,
  type JournalReport,
  type LockWorld,
  openStores,
  repairJournal as repair,
} from '../../../src/persistence/file_journal/mod.ts';
import { realLockWorld } from './lock_world.ts';
import { nodeFileSystem } from './node_file_system.ts';

/** Options of `openFileStores`. All fields are optional. */
export interface FileStoresOptions extends PureOptions {
  /** For tests. Default: the real ones. */
  readonly system?: FileSystem;
  readonly lockWorld?: LockWorld;
}

/**
 * Opens the stores in `directory`, which is made if its parent exists, and which belongs to one process at a time. Deno
 * needs `--allow-read` and `--allow-write` for it.
 * @throws OptionsError, StoreLockedError, StoreDamagedError, StorageError
 */
export async function openFileStores(directory: string, options: FileStoresOptions = {}): Promise<FileStores> {
  const { system = nodeFileSystem, lockWorld } = options;
  if (lockWorld !== undefined) return await openStores({ system, lockWorld }, directory, options);
  const real = realLockWorld();
  try {
    const stores = await openStores({ system, lockWorld: real }, directory, options);
    return { ...stores, close: () => stores.close().finally(real.end) };
  } catch (error) {
    real.end();
    throw error;
  }
}

/** Reads everything in `directory` and changes nothing. @throws StorageError when it cannot be read */
export function checkJournal(directory: string): Promise<readonly JournalReport[]> {
  return check(nodeFileSystem, directory);
}

/**
 * Gives up what `checkJournal` says in `wouldDrop`, for each log that has it, and answers that. The bytes are kept beside,
 * in a file `SEGMENT.POSITION.dropped`.
 * @throws StoreLockedError while somebody has the directory open
 */
export async function repairJournal(directory: string): Promise<readonly Drop[]> {
  const lockWorld = realLockWorld();
  try {
    return await repair({ system: nodeFileSystem, lockWorld }, directory);
  } finally {
    lockWorld.end();
  }
}
