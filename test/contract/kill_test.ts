/**
 * Real processes that are killed with SIGKILL while they write, one after the other on the same directory, by turns on the
 * three runtimes. `SINGLET_KILLS` sets how often; default 20.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertEquals } from '@std/assert';
import { openFileStores } from '../../adapters/shared/file_journal/mod.ts';
import { repositoryRoot, runtimeCommand, type RuntimeName } from '../../demo/runtime_commands.ts';
import { collect } from './journal_contract.ts';

const kills = Number(process.env['SINGLET_KILLS'] ?? 20);
const runtimes: readonly RuntimeName[] = ['bun', 'node', 'deno'];

class Writer {
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
        throw new Error(`the writer does not write: ${this.#errors}`);
      }
      await sleep(5);
    }
  }

  /** What it had said by then, line by line. */
  async kill(): Promise<readonly string[]> {
    this.#child.kill('SIGKILL');
    await this.#closed;
    return this.#output.split('\n').slice(0, -1);
  }
}

test(
  `FB-116, FB-119: ${kills} times SIGKILL, and what was acknowledged is there`,
  { timeout: 60_000 + kills * 5_000 },
  async () => {
    const directory = await mkdtemp(`${tmpdir()}/singlet-kill-`);
    const highest = {
      acked: new Map<string, number>(),
      tried: new Map<string, number>(),
      snapshot: new Map<string, number>(),
    };
    const raise = (map: Map<string, number>, id: string, to: number) => map.set(id, Math.max(to, map.get(id) ?? 0));
    try {
      for (let round = 1; round <= kills; round += 1) {
        const writer = new Writer(runtimes[round % 3] as RuntimeName, directory, round);
        let lines: readonly string[] = [];
        try {
          await writer.untilFirstAck();
          await sleep(Math.random() * 60);
        } finally {
          lines = await writer.kill();
        }
        for (const line of lines) {
          const [what, id = '', number] = line.split(' ');
          if (what === 'ack') raise(highest.acked, id, Number(number));
          if (what === 'try') raise(highest.tried, id, Number(number));
          if (what === 'snapshot') raise(highest.snapshot, id, Number(number));
        }
        const stores = await openFileStores(directory, { segmentBytes: 20_000 });
        for (const [id, acked] of highest.acked) {
          const events = await collect(stores.journal.read(id));
          const expected = Array.from({ length: events.length }, (_, index) => ({ id, number: index + 1 }));
          assertEquals(events.map((event) => event.payload), expected, `round ${round}: ${id}`);
          assertEquals(
            events.length >= acked,
            true,
            `round ${round}: ${id} has ${events.length}, acknowledged ${acked}`,
          );
          assertEquals(events.length <= (highest.tried.get(id) ?? 0), true, `round ${round}: ${id} invented events`);
          const snapshot = await stores.snapshots.loadLatest(id);
          assertEquals(
            (snapshot?.sequenceNr ?? 0) >= (highest.snapshot.get(id) ?? 0),
            true,
            `round ${round}: ${id} snapshot`,
          );
        }
        await stores.close();
      }
      assertEquals(highest.acked.size, 6);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  },
);
