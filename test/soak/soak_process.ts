/** Child processes of the soak tests: line by line in and out, with waits that end when the line comes. */
import { type ChildProcess, spawn } from 'node:child_process';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { repositoryRoot } from '../../demo/runtime_commands.ts';

const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Nothing here takes this long; a loaded machine may. */
export const deadlineMs = 60_000;

export class SoakProcess {
  readonly title: string;
  /** Resolves with the exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  exit: number | string | undefined;
  /** The latest lines of both outputs, for failure messages. */
  readonly #output: string[] = [];
  readonly #child: ChildProcess;
  readonly #waits = new Set<(line: string | undefined) => void>();

  constructor(title: string, file: string, args: readonly string[], onLine: (line: string) => void = () => {}) {
    this.title = title;
    this.#child = spawn(file, args, {
      cwd: repositoryRoot,
      env: plainEnvironment(),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    children.add(this.#child);
    this.#child.stdin!.on('error', () => {});
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      createInterface({ input: stream }).on('line', (line) => {
        this.#output.push(line);
        if (this.#output.length > 400) this.#output.splice(0, 200);
        onLine(line);
        for (const wait of [...this.#waits]) wait(line);
      });
    }
    this.exited = new Promise((resolve) => {
      this.#child.on('error', (error) => this.#output.push(`cannot start ${file}: ${error.message}`));
      this.#child.on('close', (code, signal) => {
        children.delete(this.#child);
        this.exit = code ?? signal ?? 'unknown';
        for (const wait of [...this.#waits]) wait(undefined);
        resolve(this.exit);
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  send(line: string): void {
    this.#child.stdin!.write(line + '\n');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The first line from now on that `match` makes something of. Rejects when the process ends or the time is up. */
  line<T>(what: string, match: (line: string) => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (why: string): void => {
        done();
        reject(new Error(`${this.title}: ${what}: ${why}\n${this.output()}`));
      };
      const timeout = setTimeout(() => end(`not within ${deadlineMs} ms`), deadlineMs);
      const wait = (line: string | undefined): void => {
        if (line === undefined) return end(`it ended with ${this.exit}`);
        const found = match(line);
        if (found === undefined) return;
        done();
        resolve(found);
      };
      const done = (): void => {
        clearTimeout(timeout);
        this.#waits.delete(wait);
      };
      this.#waits.add(wait);
    });
  }

  /** Sends a line and waits for the answer `@VERB JSON`. */
  ask<T>(verb: string): Promise<T> {
    const prefix = `@${verb} `;
    const answer = this.line(
      verb,
      (line) => line.startsWith(prefix) ? JSON.parse(line.slice(prefix.length)) as T : undefined,
    );
    this.send(verb);
    return answer;
  }

  output(): string {
    return [`--- ${this.title} (pid ${this.pid}, ${this.exit ?? 'runs'})`, ...this.#output].join('\n');
  }
}

/** Without proxies, since all peers are on this machine, and without what changes the output. */
function plainEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !/^(https?|all)_proxy$|^FORCE_COLOR$|^NODE_OPTIONS$|^NODE_TEST_CONTEXT$/i.test(name)) {
      environment[name] = value;
    }
  }
  return { ...environment, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
}
