/** A file system in memory that can fail, and that can be looked at as a crash would leave it. */
import type { LockWorld } from '../../../src/persistence/file_journal/directory_lock.ts';
import type { FileHandle, FileSystem } from '../../../src/persistence/file_journal/file_system.ts';
import { StorageError } from '../../../src/persistence/mod.ts';

class Inode {
  content = new Uint8Array(0);
  /** As of the last sync. */
  synced = new Uint8Array(0);
}

/**
 * What a crash leaves. `process`: the process is gone, the machine goes on. `power`: only what was synced. `zeros`: sizes
 * have reached the disk, contents have not. `half`: names as in `power`, and half of what was not synced. `renamed`: as
 * `power`, but what was renamed had reached the disk before other names.
 */
export type Crash = 'process' | 'power' | 'zeros' | 'half' | 'renamed';
export const crashes: readonly Crash[] = ['process', 'power', 'zeros', 'half', 'renamed'];

export class MemoryFileSystem implements FileSystem {
  readonly files = new Map<string, Inode>();
  readonly directories = new Set<string>(['/data']);
  /** Names as of the last sync of their directory. */
  readonly syncedFiles = new Map<string, Inode>();
  /** The same, with renames ahead of their sync. */
  readonly renamedFiles = new Map<string, Inode>();
  /** Bytes and operations that are left before the crash. */
  budget = Infinity;
  spent = 0;
  /** Called before each operation; may throw, or give how many bytes of a write are to be written. */
  fault: ((operation: string, path: string, bytes: number) => number | void) | undefined = undefined;
  readonly operations: string[] = [];

  makeDirectory(path: string): Promise<void> {
    return this.#do('mkdir', path, () => {
      const parent = path.slice(0, path.lastIndexOf('/'));
      if (parent !== '' && !this.directories.has(parent)) throw failure('ENOENT', path);
      this.directories.add(path);
    });
  }

  list(path: string): Promise<readonly string[]> {
    return this.#do('list', path, () => {
      if (!this.directories.has(path)) throw failure('ENOENT', path);
      const names = [...this.files.keys(), ...this.directories].filter((name) => name.startsWith(`${path}/`))
        .map((name) => name.slice(path.length + 1)).filter((name) => !name.includes('/'));
      return [...new Set(names)].sort();
    });
  }

  open(path: string, mode: 'read' | 'write' | 'create'): Promise<FileHandle> {
    return this.#do(`open ${mode}`, path, () => {
      const found = this.files.get(path);
      if (mode === 'create' && found !== undefined) throw failure('EEXIST', path);
      if (mode !== 'create' && found === undefined) throw failure('ENOENT', path);
      const inode = found ?? new Inode();
      this.files.set(path, inode);
      return this.#handle(path, inode);
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#do('rename', to, () => {
      const inode = this.files.get(from);
      if (inode === undefined) throw failure('ENOENT', from);
      this.files.set(to, inode);
      this.files.delete(from);
      this.renamedFiles.set(to, inode);
      this.renamedFiles.delete(from);
    });
  }

  remove(path: string): Promise<void> {
    return this.#do('remove', path, () => void this.files.delete(path));
  }

  syncDirectory(path: string): Promise<void> {
    return this.#do('sync directory', path, () => {
      const inside = (name: string) => name.slice(0, name.lastIndexOf('/')) === path;
      for (const name of [...this.syncedFiles.keys()]) {
        if (inside(name) && !this.files.has(name)) this.syncedFiles.delete(name);
      }
      for (const [name, inode] of this.files) if (inside(name)) this.syncedFiles.set(name, inode);
      this.renamedFiles.clear();
      for (const [name, inode] of this.syncedFiles) this.renamedFiles.set(name, inode);
    });
  }

  /** The disk as the next process finds it. */
  after(crash: Crash): MemoryFileSystem {
    const next = new MemoryFileSystem();
    for (const directory of this.directories) next.directories.add(directory);
    const names = { process: this.files, renamed: this.renamedFiles };
    for (const [path, inode] of names[crash as 'process' | 'renamed'] ?? this.syncedFiles) {
      const copy = new Inode();
      copy.content = remains(inode, crash);
      copy.synced = copy.content;
      next.files.set(path, copy);
      next.syncedFiles.set(path, copy);
      next.renamedFiles.set(path, copy);
    }
    return next;
  }

  content(path: string): Uint8Array {
    const inode = this.files.get(path);
    if (inode === undefined) throw new Error(`no ${path} among ${[...this.files.keys()].join(', ')}`);
    return inode.content;
  }

  put(path: string, content: Uint8Array): void {
    const inode = this.files.get(path) ?? new Inode();
    inode.content = new Uint8Array(content);
    inode.synced = inode.content;
    this.files.set(path, inode);
    this.syncedFiles.set(path, inode);
    this.renamedFiles.set(path, inode);
  }

  #handle(path: string, inode: Inode): FileHandle {
    return {
      size: () => this.#do('size', path, () => inode.content.length),
      read: (target, position) =>
        this.#do('read', path, () => {
          const bytes = inode.content.subarray(position, position + target.length);
          target.set(bytes);
          return bytes.length;
        }),
      write: async (bytes, position) => {
        await Promise.resolve();
        this.#check();
        const allowed = this.fault?.('write', path, bytes.length) ?? bytes.length;
        const count = Math.min(bytes.length, allowed, this.budget);
        const next = new Uint8Array(Math.max(inode.content.length, position + count));
        next.set(inode.content);
        next.set(bytes.subarray(0, count), position);
        inode.content = next;
        this.operations.push(`write ${path}`);
        this.#spend(bytes.length);
        return count;
      },
      truncate: (size) =>
        this.#do('truncate', path, () => {
          inode.content = inode.content.slice(0, size);
        }),
      sync: () =>
        this.#do('sync', path, () => {
          inode.synced = inode.content.slice();
        }),
      close: () => Promise.resolve(),
    };
  }

  async #do<T>(operation: string, path: string, run: () => T): Promise<T> {
    await Promise.resolve();
    const looks = /^(list|open read|read|size)$/.test(operation);
    this.#check();
    this.fault?.(operation, path, 0);
    if (!looks) this.#spend(1);
    this.operations.push(`${operation} ${path}`);
    return run();
  }

  #check(): void {
    if (this.budget < 0) throw new Crashed();
  }

  #spend(cost: number): void {
    this.budget -= cost;
    if (this.budget < 0) throw new Crashed();
    this.spent += cost;
  }
}

function remains(inode: Inode, crash: Crash): Uint8Array<ArrayBuffer> {
  if (crash === 'process') return inode.content.slice();
  const { content, synced } = inode;
  if (crash === 'power' || crash === 'renamed' || content.length <= synced.length) return synced.slice();
  if (crash === 'half') return content.slice(0, synced.length + ((content.length - synced.length) >> 1));
  const zeros = new Uint8Array(content.length);
  zeros.set(synced);
  return zeros;
}

/** The machine is gone: nothing answers any more. */
export class Crashed extends Error {}

export function failure(code: string, path: string): StorageError {
  return new StorageError(`cannot use ${path} (${code})`, code);
}

/** For the locks of a process that exists by itself: a clock that goes on when somebody sleeps. */
export function lonelyWorld(pid = 1): LockWorld {
  let time = 0;
  return {
    self: { host: 'here', pid, uid: `uid-${pid}` },
    now: () => time,
    sleep: async (ms) => void (time += ms),
    every: () => () => {},
    lifeOf: (owner) => owner.pid === pid ? 'alive' : 'gone',
  };
}
