/** Runs one command to its end, or to its time limit, and keeps what it printed. */
import { spawn } from 'node:child_process';
import process from 'node:process';
import { root } from './files.ts';

export interface Outcome {
  readonly exitCode: number;
  readonly output: string;
  readonly seconds: number;
}

export interface RunOptions {
  readonly timeoutMs: number;
  /** Also shows the output as it comes. */
  readonly echo: boolean;
}

export function run(command: readonly string[], options: RunOptions): Promise<Outcome> {
  const [program = '', ...args] = command;
  const started = performance.now();
  let output = '';
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined, DENO_NO_UPDATE_CHECK: '1' },
    });
    const take = (chunk: string) => {
      output += chunk;
      if (options.echo) process.stdout.write(chunk);
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    const timer = setTimeout(() => {
      take(`\nStopped after ${options.timeoutMs / 1000} s: the time limit of this part.\n`);
      stopGroup(child.pid);
    }, options.timeoutMs);
    const finish = (exitCode: number) => {
      clearTimeout(timer);
      resolve({ exitCode, output, seconds: (performance.now() - started) / 1000 });
    };
    child.on('error', (error) => {
      take(`Cannot start ${program}: ${error.message}\n`);
      finish(127);
    });
    child.on('close', (code) => finish(code ?? 1));
  });
}

/** The whole process group: a test that hangs may have started processes of its own. */
function stopGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // It ended by itself meanwhile.
  }
}
