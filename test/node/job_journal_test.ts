import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertGreater, assertLess, assertRejects } from '@std/assert';
import type { CallOutcome, JobCall } from '../../node/job.ts';
import { JobJournal } from '../../node/job_journal.ts';
import { JobTable } from '../../node/job_table.ts';
import type { Environment } from '../../src/actor/environment.ts';
import { LevelLogger } from '../../src/actor/logger.ts';
import { realEnvironment } from '../../src/actor/real_environment.ts';
import { limits } from '../../src/limits.ts';
import { JournalConcurrencyError, type Writer } from '../../src/persistence/mod.ts';
import { seededRandom } from '../../src/testkit/manual_environment.ts';
import { collect } from '../contract/journal_contract.ts';
import { Disk, type Fault } from './job_stores_fixture.ts';

const url = 'http://127.0.0.1:9000/hook';
const ok: CallOutcome = { status: 200, error: undefined, tookMs: 5 };
const persistenceId = 'jobs-test';
const log = new LevelLogger('off', () => {});

/** A disk, a wall clock, and the host of the moment. */
class World {
  readonly disk = new Disk();
  now = 1_000_000;
  epoch = 0;
  table!: JobTable;
  journal!: JobJournal;

  /** The next host, whatever has become of the one before. */
  async host(): Promise<boolean> {
    this.disk.users = 0;
    const writer: Writer = { epoch: ++this.epoch, uid: `u${this.epoch}`, clusterId: 'c' };
    const environment: Environment = {
      ...realEnvironment(log),
      clock: { now: () => 0, wall: () => this.now },
    };
    const table = new JobTable((id, what) => this.journal.changed(id, what));
    this.table = table;
    this.journal = new JobJournal({
      persistenceId,
      table,
      open: this.disk.open,
      writer: () => writer,
      environment,
      log,
    });
    return await this.journal.recover();
  }
}

async function hosted(): Promise<World> {
  const world = new World();
  assertFalse(await world.host());
  return world;
}

describe('job journal', () => {
  test('a successor has what was written, and nothing of what was not', async () => {
    const world = await hosted();
    world.table.put({ id: 'a', url, everyMs: 100 }, world.now);
    world.table.put({ id: 'b', url, at: world.now + 50 }, world.now);
    world.table.put({ id: 'c', url, everyMs: 100 }, world.now);
    await world.journal.write();
    world.table.remove('c');
    world.now += 100;
    const calls = world.table.due(world.now);
    assertEquals(calls.length, 2);
    await world.journal.write();
    for (const call of calls) if (call.id === 'a') world.table.ended(call, ok);
    await world.journal.write();
    world.table.put({ id: 'd', url, everyMs: 100 }, world.now);
    assert(await world.host());
    assertEquals(world.table.page(undefined).jobs.map(({ id, runs, lastStatus }) => [id, runs, lastStatus]), [
      ['a', 1, 200],
      ['b', 1, null],
    ]);
    assertEquals(world.table.due(world.now).map(({ id, run }) => [id, run]), [['b', 1]]);
  });

  test('one event holds all that changed in a turn; nothing changed writes nothing; a run repeats no definition', async () => {
    const world = await hosted();
    for (let index = 0; index < 50; index++) world.table.put({ id: `j${index}`, url, everyMs: 100 }, world.now);
    await world.journal.write();
    await world.journal.write();
    assertEquals(world.disk.appends, 1);
    world.now += 100;
    world.table.due(world.now);
    await world.journal.write();
    assertEquals(world.disk.appends, 2);
    const events = await collect(world.disk.journal.read(persistenceId));
    assertFalse(JSON.stringify(events[1]!.payload).includes(url));
  });

  for (const fault of ['append', 'append-after-write'] as const) {
    test(`after a failed write (${fault}) nothing is lost, and it goes on`, async () => {
      const world = await hosted();
      world.table.put({ id: 'a', url, everyMs: 100 }, world.now);
      world.disk.fault = fault;
      await assertRejects(() => world.journal.write(), Error);
      assertEquals(world.disk.users, 0);
      world.disk.fault = 'open';
      world.table.put({ id: 'b', url, everyMs: 100 }, world.now);
      await assertRejects(() => world.journal.write(), Error, 'EACCES');
      world.disk.fault = undefined;
      await world.journal.write();
      world.table.remove('a');
      await world.journal.write();
      await world.host();
      assertEquals(world.table.page(undefined).jobs.map((job) => job.id), ['b']);
    });
  }

  test('after a failed write a table does not go on when somebody else has written meanwhile', async () => {
    const world = await hosted();
    world.table.put({ id: 'a', url, everyMs: 100 }, world.now);
    world.disk.fault = 'append';
    await assertRejects(() => world.journal.write(), Error);
    world.disk.fault = undefined;
    const other: Writer = { epoch: 1, uid: 'other', clusterId: 'other' };
    const { writer } = await world.disk.journal.claim(persistenceId, other);
    await world.disk.journal.append(persistenceId, [{ payload: { rows: [], removed: [] } }], 0, writer);
    await assertRejects(() => world.journal.write(), JournalConcurrencyError);
  });

  test('stays small: snapshots are taken, events before them go, and a successor has it all', async () => {
    const world = await hosted();
    const jobs = 100;
    for (let index = 0; index < jobs; index++) world.table.put({ id: `j${index}`, url, everyMs: 100 }, world.now);
    const turns = Math.ceil(5 * limits.jobRowsPerSnapshot / jobs);
    for (let turn = 0; turn < turns; turn++) {
      world.now += 100;
      for (let calls = world.table.due(world.now); calls.length > 0;) {
        await world.journal.write();
        calls = calls.flatMap((call) => world.table.ended(call, ok));
      }
      await world.journal.write();
    }
    await world.journal.close();
    const snapshots = await world.disk.snapshots.list(persistenceId);
    assertEquals(snapshots.length, 2);
    const events = await collect(world.disk.journal.read(persistenceId));
    assertGreater(events[0]!.sequenceNr, snapshots[0]!);
    assertLess(events.length, 3 * limits.jobRowsPerSnapshot / jobs + 2);
    await world.host();
    assertEquals(world.table.size, jobs);
    for (const job of world.table.page(undefined).jobs) assertEquals(job.runs, turns);
  });

  test('a full table fits', async () => {
    const world = await hosted();
    const long = `${url}?${'x'.repeat(200)}`;
    for (let index = 0; index < limits.jobs; index++) {
      world.table.put({ id: `j${index}`, url: long, everyMs: 1_000 }, world.now);
    }
    await world.journal.write();
    await world.host();
    assertEquals(world.table.size, limits.jobs);
  });
});

interface Received {
  readonly call: JobCall;
  readonly epoch: number;
}

/** Hosts that crash at any moment, in turn, over disks that fail now and then; the targets' side is what is checked. */
class Crashes extends World {
  readonly #random: { next(): number };
  readonly received: Received[] = [];
  /** Runs that were called and whose end was not durable when a host crashed; how often. */
  readonly interrupted = new Map<string, number>();
  readonly accepted = new Set<string>();
  #inFlight = new Map<string, JobCall>();
  #begun: JobCall[] = [];
  /** Ended, and that is not durable: an end that a crash forgets. */
  #ended: JobCall[] = [];
  #ids = 0;

  constructor(seed: number) {
    super();
    this.#random = seededRandom(seed);
  }

  below(bound: number): number {
    return Math.floor(this.#random.next() * bound);
  }

  /** Whether it became durable. */
  async write(): Promise<boolean> {
    const faults: readonly (Fault | undefined)[] = ['append', 'append-after-write', 'open'];
    this.disk.fault = faults[this.below(20)];
    try {
      await this.journal.write();
    } catch {
      return false;
    } finally {
      this.disk.fault = undefined;
    }
    for (const call of this.#ended.splice(0)) this.#inFlight.delete(key(call));
    for (const call of this.#begun.splice(0)) {
      this.received.push({ call, epoch: this.epoch });
      this.#inFlight.set(key(call), call);
    }
    return true;
  }

  async step(): Promise<void> {
    const what = this.below(10);
    this.now += this.below(40);
    if (what === 0) {
      await this.crash();
      for (const id of this.accepted) assert(this.table.get(id) !== undefined, `${id} is lost`);
      return;
    }
    if (what === 1 && this.table.size < 8) {
      const id = `j${++this.#ids}`;
      this.table.put(this.below(3) === 0 ? { id, url, at: this.now + 20 } : { id, url, everyMs: 50 }, this.now);
      if (await this.write()) this.accepted.add(id);
      return;
    }
    for (const call of [...this.#inFlight.values()].filter(() => this.below(2) === 0)) {
      if (this.#ended.includes(call)) continue;
      this.#begun.push(...this.table.ended(call, ok));
      this.#ended.push(call);
    }
    this.#begun.push(...this.table.due(this.now));
    await this.write();
  }

  async crash(): Promise<void> {
    for (const run of this.#inFlight.keys()) this.interrupted.set(run, (this.interrupted.get(run) ?? 0) + 1);
    this.#inFlight.clear();
    this.#begun = [];
    this.#ended = [];
    await this.host();
  }

  async settle(): Promise<void> {
    await this.crash();
    for (let turn = 0; turn < 3; turn++) {
      this.now += 50;
      this.#begun.push(...this.table.due(this.now));
      await this.journal.write();
      for (const call of this.#begun.splice(0)) {
        this.received.push({ call, epoch: this.epoch });
        this.table.ended(call, ok);
      }
    }
  }
}

function key({ id, run }: JobCall): string {
  return `${id}#${run}`;
}

describe('job journal, random crashes', () => {
  test('no run number for two due times, no due time twice, none lost; doubled only what a crash interrupted', async () => {
    let interrupted = 0;
    let repeated = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const world = new Crashes(seed);
      await world.host();
      for (let step = 0; step < 150; step++) await world.step();
      await world.settle();
      for (const times of world.interrupted.values()) interrupted += times;
      const times = new Map<string, number>();
      const dueOf = new Map<string, number>();
      const runOf = new Map<string, number>();
      for (const { call } of world.received) {
        const run = key(call);
        const due = `${call.id}@${call.dueAt}`;
        times.set(run, (times.get(run) ?? 0) + 1);
        assertEquals(dueOf.get(run) ?? call.dueAt, call.dueAt, `seed ${seed}: ${run}`);
        assertEquals(runOf.get(due) ?? call.run, call.run, `seed ${seed}: ${due}`);
        dueOf.set(run, call.dueAt);
        runOf.set(due, call.run);
      }
      for (const [run, count] of times) {
        const allowed = 1 + (world.interrupted.get(run) ?? 0);
        assert(count <= allowed, `seed ${seed}: ${run} came ${count} times, ${allowed} allowed`);
        repeated += count - 1;
      }
      for (const id of world.accepted) {
        const { runs } = world.table.get(id)!;
        for (let run = 1; run <= runs; run++) assert(times.has(`${id}#${run}`), `seed ${seed}: ${id}#${run} is lost`);
        assertGreater(runs, 0);
      }
    }
    assertGreater(interrupted, 50);
    assertGreater(repeated, 50);
  });
});
