/** The real world of a directory lock: processes of this machine, timers. */
import { hostname } from 'node:os';
import process from 'node:process';
import type { LockOwner, LockWorld } from '../../../src/persistence/file_journal/mod.ts';

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
    end: () => open.delete(uid),
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

/** Deno asks the person at the terminal for what it was not allowed, and everything waits for the answer. */
function mayAsk(name: string, kind?: string): boolean {
  const { Deno: deno } = globalThis as unknown as {
    Deno?: { permissions: { querySync(permission: { name: string; kind?: string }): { state: string } } };
  };
  if (deno === undefined) return true;
  return deno.permissions.querySync(kind === undefined ? { name } : { name, kind }).state === 'granted';
}

function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}
