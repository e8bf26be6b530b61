/** `singlet/file-journal`: journal, snapshots and durable states in the files of one machine. */
export { checkJournal, type FileStoresOptions, openFileStores, repairJournal } from './file_stores.ts';
export { nodeFileSystem } from './node_file_system.ts';
export {
  type CutTail,
  type Drop,
  type FileHandle,
  FileJournal,
  type FileJournalOptions,
  FileSnapshotStore,
  type FileSnapshotStoreOptions,
  type FileStores,
  type FileSystem,
  type JournalReport,
  type LockOwner,
  type LockWorld,
} from '../../../src/persistence/file_journal/mod.ts';
