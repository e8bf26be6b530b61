#!/usr/bin/env node
/** The command line tool: `npx singlet`, `bunx singlet`, `deno run -A npm:singlet`. See `--help`. */
import { runtime } from '#runtime';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { main } from './main.ts';
import { makeTerminal } from './output.ts';

const interrupted = new AbortController();
// The first signal ends waiting and following in an orderly manner, a second one at once.
runtime.onSignal(() => interrupted.signal.aborted ? runtime.exit(130) : interrupted.abort());
// A reader such as `head` that has enough is no error.
process.stdout.on('error', () => process.exit(0));

const code = await main({
  args: runtime.args(),
  terminal: makeTerminal({
    write: (text) => void process.stdout.write(text),
    writeError: (text) => void process.stderr.write(text),
    outIsTerminal: process.stdout.isTTY === true,
    errorIsTerminal: process.stderr.isTTY === true,
    noColour: (runtime.environmentVariable('NO_COLOR') ?? '') !== '',
  }),
  environmentVariable: (name) => runtime.environmentVariable(name),
  readTextFile: (path) => runtime.readTextFile(path),
  fetch: (url, init, tls) => runtime.fetch(url, init, tls),
  now: () => performance.now(),
  wall: () => Date.now(),
  pause: (ms) => pause(ms),
  interrupted: interrupted.signal,
});
// Not at once: what is still in a pipe must get out. The listener for signals would keep the process.
process.exitCode = code;
process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
