/** The file journal without the files: what it takes of a file system and of the world comes in from outside. */
export { checkJournal, type Drop, type JournalReport, repairJournal } from './check_journal.ts';
export type { LockOwner, LockWorld } from './directory_lock.ts';
export { FileJournal, type FileJournalOptions } from './file_journal.ts';
export { FileSnapshotStore, type FileSnapshotStoreOptions } from './file_snapshot_store.ts';
export { type FileStores, type FileStoresOptions, type FileWorld, openStores } from './file_stores.ts';
export type { FileHandle, FileSystem } from './file_system.ts';
export type { CutTail } from './log_files.ts';
