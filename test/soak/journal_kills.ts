/**
 * Real processes that are killed with SIGKILL while they write a file journal, one after the other on the same directory.
 * After each, everything acknowledged must be there, in order, and nothing that nobody wrote.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFileStores } from '../../adapters/shared/file_journal/mod.ts';
import { repositoryRoot, runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { randomOf } from './arena.ts';

export interface JournalKillsOptions {
  readonly rounds: number;
  /** They take turns. */
  readonly runtimes: readonly RuntimeName[];
  readonly seed: number;
  /** Rounds on one directory before the next one is begun. Default 25. */
  readonly roundsPerDirectory?: number;
  readonly say?: (text: string) => void;
}

export interface JournalKillsResult {
  readonly kills: Readonly<Record<string, number>>;
  readonly acknowledged: number;
  /** Rounds in which the writer was killed before it had acknowledged anything. */
  readonly early: number;
  readonly broken: readonly string[];
}

/** Rejects when a writer does not write at all. */
export async function journalKills(options: JournalKillsOptions): Promise<JournalKillsResult> {
  const { rounds, runtimes, seed, roundsPerDirectory = 25, say = () => {} } = options;
  const random = randomOf(seed);
  const kills: Record<string, number> = {};
  const broken: string[] = [];
  let acknowledged = 0;
  let early = 0;
  for (let round = 0; round < rounds;) {
    const directory = await mkdtemp(`${tmpdir()}/singlet-kill-`);
    const books = new Books();
    try {
      for (let turn = 1; turn <= roundsPerDirectory && round < rounds; turn += 1, round += 1) {
        const runtime = runtimes[round % runtimes.length] as RuntimeName;
        const writer = new Writer(runtime, directory, turn);
        // Also while it starts, opens and recovers.
        const starting = random() < 0.2;
        if (starting) await sleep(random() * 250);
        else {
          await writer.untilFirstAck();
          await sleep(random() * 60);
        }
        const lines = await writer.kill();
        kills[runtime] = (kills[runtime] ?? 0) + 1;
        const acks = books.note(lines);
        acknowledged += acks;
        if (acks === 0) early += 1;
        for (const text of await books.compare(directory)) broken.push(`round ${round + 1} (${runtime}): ${text}`);
      }
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
    say(`${round} of ${rounds} kills, ${acknowledged} appends acknowledged, ${broken.length} broken`);
  }
  return { kills, acknowledged, early, broken };
}

/** A process that writes as fast as it can. */
export class Writer {
  readonly #child: ChildProcess;
  readonly #closed: Promise<void>;
  #output = '';
  #errors = '';

  constructor(runtime: RuntimeName, directory: string, epoch: number) {
    const { file, args } = runtimeCommand(runtime, true);
    const allowed = [`--allow-read=${directory}`, `--allow-write=${directory}`, '--allow-sys=hostname'];
    const flags = args.flatMap((arg) => arg === '--allow-net' ? allowed : [arg]);
    this.#child = spawn(file, [...flags, 'test/contract/journal_writer.ts', directory, String(epoch)], {
      cwd: repositoryRoot,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child.stdout?.on('data', (bytes) => this.#output += String(bytes));
    this.#child.stderr?.on('data', (bytes) => this.#errors += String(bytes));
    this.#closed = new Promise((resolve) => this.#child.on('close', () => resolve()));
  }

  async untilFirstAck(): Promise<void> {
    for (let waited = 0; !this.#output.includes('ack'); waited += 5) {
      if (waited > 30_000 || this.#child.exitCode !== null) {
        await this.kill();
        throw new Error(`the writer does not write: ${this.#errors}`);
      }
      await sleep(5);
    }
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    // Not by the child: Deno sends one signal to each and no more.
    process.kill(this.#child.pid as number, signal);
  }

  /** Resolves when it has ended, with what it complained of. */
  async ended(): Promise<string> {
    await this.#closed;
    return this.#errors;
  }

  /** What it had said by then, line by line. */
  async kill(): Promise<readonly string[]> {
    this.#child.kill('SIGKILL');
    await this.#closed;
    return this.#output.split('\n').slice(0, -1);
  }
}

/** What the writers of one directory have said: for each id the highest number. */
export class Books {
  readonly #highest = {
    ack: new Map<string, number>(),
    try: new Map<string, number>(),
    snapshot: new Map<string, number>(),
  };

  /** How many appends were acknowledged in these lines. */
  note(lines: readonly string[]): number {
    let acks = 0;
    for (const line of lines) {
      const [what = '', id = '', number] = line.split(' ');
      const map = this.#highest[what as 'ack'];
      if (map === undefined) continue;
      map.set(id, Math.max(Number(number), map.get(id) ?? 0));
      if (what === 'ack') acks += 1;
    }
    return acks;
  }

  /** Opens the directory as the next writer would. */
  async compare(directory: string): Promise<string[]> {
    const problems: string[] = [];
    const stores = await openFileStores(directory, { segmentBytes: 20_000 });
    for (const [id, tried] of this.#highest.try) {
      let count = 0;
      for await (const { payload, sequenceNr } of stores.journal.read(id)) {
        count += 1;
        const { id: of, number } = payload as { id: string; number: number };
        if (of !== id || number !== count || sequenceNr !== count) {
          problems.push(`${id}: event ${sequenceNr} is number ${number} of ${of}, ${count} was due`);
          break;
        }
      }
      const acked = this.#highest.ack.get(id) ?? 0;
      if (count < acked) problems.push(`${id}: has ${count} events, and ${acked} were acknowledged`);
      if (count > tried) problems.push(`${id}: has ${count} events, and only ${tried} were ever written`);
      const saved = this.#highest.snapshot.get(id) ?? 0;
      const snapshot = await stores.snapshots.loadLatest(id);
      if ((snapshot?.sequenceNr ?? 0) < saved) problems.push(`${id}: the snapshot of ${saved} is not there`);
    }
    await stores.close();
    return problems;
  }
}
