/**
 * Compiled code kept on disk between starts. Node strips the types from every source file each time it starts, which is
 * most of the start; Bun and Deno keep what they have transpiled by themselves.
 */
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Beside the installed packages, where nobody else writes: a shared folder for temporary files is no place for code. */
const folder = fileURLToPath(new URL('../node_modules/.cache/singlet', import.meta.url));
/** Milliseconds after the start at which what was compiled is written; a process that is killed writes nothing by itself. */
const saveAfterMs = 3_000;

interface Module {
  enableCompileCache?(folder: string): unknown;
  flushCompileCache?(): void;
}

/** To be called before the modules that are worth it are imported. Where the cache is not to be had, nothing happens. */
export function keepCompiledCode(): void {
  const { enableCompileCache, flushCompileCache } = process.getBuiltinModule('node:module') as Module;
  if (enableCompileCache === undefined || flushCompileCache === undefined) return;
  enableCompileCache(folder);
  setTimeout(flushCompileCache, saveAfterMs).unref();
}
