/** The real world of a directory lock: processes of this machine, timers. */
import { hostname } from 'node:os';
import process from 'node:process';
import type { LockOwner, LockWorld } from '../../../src/persistence/file_journal/mod.ts';
import { mayAsk } from './permissions.ts';

/** Locks that this process has: one with its process number and none of these is of an earlier process. */
const open = new Set<string>();

export function realLockWorld(): LockWorld & { readonly end: () => void } {
  const uid = crypto.randomUUID();
  open.add(uid);
  const self: LockOwner = {
    host: (mayAsk('sys', 'hostname') ? attempt(hostname) : undefined) ?? '',
    pid: attempt(() => process.pid) ?? 0,
    uid,
  };
  return {
    self,
    now: () => performance.now(),
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    every(ms, run) {
      const timer = setInterval(run, ms);
      (timer as unknown as { unref?: () => void }).unref?.();
      return () => clearInterval(timer);
    },
    lifeOf(owner) {
      if (open.has(owner.uid)) return 'alive';
      return owner.host === self.host && self.host !== '' && owner.pid > 0 && isGone(owner, self.pid)
        ? 'gone'
        : 'unknown';
    },
    ...fileLocks(),
    end: () => open.delete(uid),
  };
}

interface DenoFile {
  tryLock(exclusive: boolean): Promise<boolean>;
  close(): void;
}

interface DenoFiles {
  open(path: string, options: { read: boolean; write: boolean; create?: boolean }): Promise<DenoFile>;
}

/**
 * Locks that the kernel takes away with the process. Deno alone has them, and it is Deno that may not ask for processes, so
 * a successor on Deno sees at once that its predecessor on Deno has ended.
 */
function fileLocks(): Pick<LockWorld, 'hold' | 'isHeld'> {
  const { Deno: deno } = globalThis as unknown as { Deno?: DenoFiles };
  if (deno === undefined) return {};
  const tryLock = async (path: string, create: boolean): Promise<DenoFile | 'held' | undefined> => {
    try {
      const file = await deno.open(path, { read: true, write: true, create });
      try {
        if (await file.tryLock(true)) return file;
      } catch {
        // A file system without locks.
        file.close();
        return undefined;
      }
      file.close();
      return 'held';
    } catch {
      return undefined;
    }
  };
  return {
    async hold(path) {
      const file = await tryLock(path, true);
      return typeof file === 'object' ? () => file.close() : undefined;
    },
    async isHeld(path) {
      const file = await tryLock(path, false);
      if (typeof file !== 'object') return file === 'held' ? true : undefined;
      file.close();
      return false;
    },
  };
}

/** A process of that number that exists may be another one: only its absence says something. */
function isGone(owner: LockOwner, ownPid: number): boolean {
  if (owner.pid === ownPid) return true;
  if (!mayAsk('run')) return false;
  try {
    process.kill(owner.pid, 0);
    return false;
  } catch (error) {
    // Not allowed to ask (Deno without --allow-run) is no answer.
    return (error as { code?: string }).code === 'ESRCH';
  }
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
