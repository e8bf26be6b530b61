/** Files by `node:fs/promises`, which Bun and Deno have too. */
import { type FileHandle as NodeHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StorageError } from '../../../src/persistence/mod.ts';
import type { FileHandle, FileSystem } from '../../../src/persistence/file_journal/mod.ts';
import { mayAsk } from './permissions.ts';

const flags = { read: 'r', write: 'r+', create: 'wx+' } as const;

const reasons: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system is read-only',
  EACCES: 'this user may not',
  EPERM: 'this user may not',
  ENOENT: 'there is no such file or directory',
  ENOTDIR: 'a part of the path is no directory',
  EMFILE: 'too many files are open',
  EIO: 'the device failed',
  EEXIST: 'it exists already',
  EDENIED: 'Deno may not: it needs --allow-read and --allow-write for this directory',
};

/** One clear error: what was tried, where, and why it did not work. */
export function storageError(operation: string, path: string, error: unknown): StorageError {
  const { code, name, message } = error as { code?: string; name?: string; message?: string };
  const denied = name === 'NotCapable' || (name === 'PermissionDenied' && code === undefined);
  const known = denied ? 'EDENIED' : code ?? name ?? 'unknown';
  return new StorageError(`cannot ${operation} ${path}: ${reasons[known] ?? message} (${known})`, known, error);
}

async function attempt<T>(operation: string, path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw storageError(operation, path, error);
  }
}

class RealHandle implements FileHandle {
  readonly #handle: NodeHandle;
  readonly #path: string;

  constructor(handle: NodeHandle, path: string) {
    this.#handle = handle;
    this.#path = path;
  }

  size(): Promise<number> {
    return attempt('look at', this.#path, async () => (await this.#handle.stat()).size);
  }

  read(target: Uint8Array, position: number): Promise<number> {
    return attempt('read', this.#path, async () => {
      let done = 0;
      while (done < target.length) {
        const { bytesRead } = await this.#handle.read(target, done, target.length - done, position + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return done;
    });
  }

  write(bytes: Uint8Array, position: number): Promise<number> {
    return attempt('write', this.#path, async () => {
      return (await this.#handle.write(bytes, 0, bytes.length, position)).bytesWritten;
    });
  }

  truncate(size: number): Promise<void> {
    return attempt('truncate', this.#path, () => this.#handle.truncate(size));
  }

  sync(): Promise<void> {
    return attempt('sync', this.#path, () => this.#handle.datasync());
  }

  close(): Promise<void> {
    return attempt('close', this.#path, () => this.#handle.close());
  }
}

/** The files of the machine, by `node:fs`, which Bun, Deno and Node all have. Every error names the path. */
export const nodeFileSystem: FileSystem = {
  makeDirectory(path) {
    return attempt('make', path, async () => {
      try {
        await mkdir(path);
      } catch (error) {
        if ((error as { code?: string }).code !== 'EEXIST') throw error;
        return;
      }
      const parent = dirname(path);
      // Deno's permission is often for the directory alone.
      if (mayAsk('read', parent)) await syncNames(parent);
    });
  },
  list: (path) => attempt('list', path, () => readdir(path)),
  open: (path, mode) => attempt('open', path, async () => new RealHandle(await open(path, flags[mode]), path)),
  rename: (from, to) => attempt('rename', from, () => rename(from, to)),
  remove: (path) => attempt('remove', path, () => rm(path, { force: true })),
  syncDirectory(path) {
    return attempt('sync', path, async () => {
      await syncNames(path);
    });
  },
};

async function syncNames(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
