/** What the file stores need of a file system, so that tests can give them one that fails and crashes. */
import { StorageError } from '../errors.ts';

/** An open file. */
export interface FileHandle {
  size(): Promise<number>;
  /** Bytes read into `target`; fewer than it holds only at the end of the file. */
  read(target: Uint8Array, position: number): Promise<number>;
  /** Bytes written, which may be fewer than given. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  truncate(size: number): Promise<void>;
  /** Content and size survive a crash once this resolves. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** Failures are `StorageError`s whose `code` is that of the system, such as `ENOSPC`. */
export interface FileSystem {
  /** Makes one directory, and its name survives a crash; fine when it is there already. */
  makeDirectory(path: string): Promise<void>;
  /** Names of the entries. */
  list(path: string): Promise<readonly string[]>;
  /** `create`: for reading and writing, and the file must not exist. */
  open(path: string, mode: 'read' | 'write' | 'create'): Promise<FileHandle>;
  rename(from: string, to: string): Promise<void>;
  /** Fine when there is no such file. */
  remove(path: string): Promise<void>;
  /** Names in the directory survive a crash once this resolves. */
  syncDirectory(path: string): Promise<void>;
}

/** The whole file; undefined when there is none. */
export async function readFile(system: FileSystem, path: string): Promise<Uint8Array | undefined> {
  let file: FileHandle;
  try {
    file = await system.open(path, 'read');
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const bytes = new Uint8Array(await file.size());
    return bytes.subarray(0, await file.read(bytes, 0));
  } finally {
    await file.close();
  }
}

/**
 * A file that its directory has a name for, or should have. Undefined means that it is certainly not there: a directory that
 * was away for a moment is an error instead.
 */
export async function readListed(system: FileSystem, directory: string, name: string): Promise<Uint8Array | undefined> {
  const path = `${directory}/${name}`;
  const bytes = await readFile(system, path);
  if (bytes !== undefined || !(await system.list(directory)).includes(name)) return bytes;
  throw new StorageError(`cannot open ${path}: it was not there, and now it is (ENOENT)`, 'ENOENT');
}

export async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const count = await file.write(bytes.subarray(done), position + done);
    if (count <= 0) throw new Error('the file system wrote nothing');
    done += count;
  }
}

/**
 * Replaces a file as a whole: written beside it, synced, renamed, and the directory synced, so that after a crash there is
 * the old content or the new one.
 */
export async function replaceFile(
  system: FileSystem,
  directory: string,
  name: string,
  bytes: Uint8Array,
): Promise<void> {
  const beside = `${directory}/${name}.tmp`;
  await system.remove(beside);
  const file = await system.open(beside, 'create');
  try {
    await writeAll(file, bytes, 0);
    await file.sync();
  } catch (error) {
    await file.close().catch(() => {});
    await system.remove(beside).catch(() => {});
    throw error;
  }
  await file.close();
  await system.rename(beside, `${directory}/${name}`);
  await system.syncDirectory(directory);
}
