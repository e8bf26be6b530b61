/** The public entry `singlet/file-journal`: stores in files, for Bun, Deno and Node. */
export { checkJournal, type Drop, type JournalReport, repairJournal } from './check_journal.ts';
export { FileJournal, type FileJournalOptions } from './file_journal.ts';
export { FileSnapshotStore, type FileSnapshotStoreOptions } from './file_snapshot_store.ts';
export { type FileStores, type FileStoresOptions, openFileStores } from './file_stores.ts';
export type { FileHandle, FileSystem } from './file_system.ts';
export type { CutTail } from './log_files.ts';
export { nodeFileSystem } from './node_file_system.ts';
