/** One `node.ts` as a child process: starts it, reads its first line, signals it, and never leaves it behind. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { repositoryRoot, runtimeCommand, type RuntimeName } from './runtime_commands.ts';

export interface StartOptions {
  readonly runtime: RuntimeName;
  /** Default: `node.ts`. Another one prints such a line too. */
  readonly program?: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** What Deno is allowed besides the network. */
  readonly denoPermissions?: readonly string[];
  /** See `runtimeCommand`; default true. */
  readonly offline?: boolean;
}

/** What the line a node prints says. */
export interface NodeLine {
  readonly address: string;
  readonly uid: string;
  readonly runtime: string;
  readonly url: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const children = new Set<ChildProcess>();
process.on('exit', killAllNodes);

/** Ends every node that is still there, at once. */
export function killAllNodes(): void {
  for (const child of children) child.kill('SIGKILL');
}

export class NodeProcess {
  readonly runtime: RuntimeName;
  readonly exited: Promise<Exit>;
  /** The first line; rejects when the node ends before it. */
  readonly line: Promise<NodeLine>;
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  #exit: Exit | undefined;
  readonly #child: ChildProcess;

  constructor(options: StartOptions) {
    this.runtime = options.runtime;
    const { file, args } = runtimeCommand(options.runtime, options.offline ?? true);
    const permissions = options.runtime === 'deno' ? options.denoPermissions ?? [] : [];
    this.#child = spawn(file, [...args, ...permissions, options.program ?? 'node.ts', ...options.flags ?? []], {
      cwd: repositoryRoot,
      env: { ...plainEnvironment(), ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.add(this.#child);
    const first = Promise.withResolvers<NodeLine>();
    this.line = first.promise;
    this.line.catch(() => {});
    this.exited = new Promise((resolve) => {
      this.#child.on('error', (error) => this.stderr.push(`cannot start ${file}: ${error.message}`));
      this.#child.on('close', (code, signal) => {
        children.delete(this.#child);
        this.#exit = { code, signal };
        first.reject(
          new Error(`${options.runtime} node ended (${signal ?? code}) before it was there:\n${this.output()}`),
        );
        resolve(this.#exit);
      });
    });
    collect(this.#child.stdout!, this.stdout, (text) => {
      const line = parseNodeLine(text);
      if (line !== undefined) first.resolve(line);
    });
    collect(this.#child.stderr!, this.stderr, () => {});
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  /** Undefined while it runs. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  output(): string {
    return [...this.stdout, ...this.stderr].join('\n');
  }
}

/** `node ADDRESS uid UID on RUNTIME VERSION, URL`. */
export function parseNodeLine(text: string): NodeLine | undefined {
  const match = /^node (\S+) uid (\S+) on (\w+ \S+), (https?:\/\/\S+)$/.exec(text);
  if (match === null) return undefined;
  const [, address, uid, runtime, url] = match as unknown as [string, string, string, string, string];
  return { address, uid, runtime, url };
}

/** The environment without proxies, since targets and peers are on this machine, and without what changes the output. */
function plainEnvironment(): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !/^(https?|all)_proxy$|^FORCE_COLOR$|^NODE_OPTIONS$|^SINGLET_/i.test(name)) {
      environment[name] = value;
    }
  }
  return { ...environment, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
}

function collect(stream: Readable, lines: string[], onLine: (line: string) => void): void {
  createInterface({ input: stream }).on('line', (line) => {
    lines.push(line);
    onLine(line);
  });
}
