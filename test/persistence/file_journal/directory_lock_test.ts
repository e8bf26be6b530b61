import { describe, test } from 'node:test';
import { assertEquals, assertMatch, assertRejects } from '@std/assert';
import { DirectoryLock, type LockOwner, type LockWorld } from '../../../src/persistence/file_journal/directory_lock.ts';
import { FileJournal } from '../../../src/persistence/file_journal/file_journal.ts';
import { StoreLockedError } from '../../../src/persistence/mod.ts';
import { collect, eventsOf, writerOf } from '../../contract/journal_contract.ts';
import { MemoryFileSystem } from './memory_file_system.ts';

/** Processes on one clock, which goes on when somebody sleeps. */
class Machine {
  time = 0;
  readonly system = new MemoryFileSystem();
  readonly gone = new Set<number>();
  readonly #beats: { readonly pid: number; readonly every: number; at: number; readonly run: () => void }[] = [];
  /** Processes that exist and do nothing. */
  readonly stopped = new Set<number>();

  world(pid: number, host = 'here'): LockWorld {
    const self = { host, pid, uid: `uid-${pid}` };
    return {
      self,
      now: () => this.time,
      sleep: (ms) => this.pass(ms),
      every: (every, run) => {
        const beat = { pid, every, at: this.time + every, run };
        this.#beats.push(beat);
        return () => void this.#beats.splice(this.#beats.indexOf(beat), 1);
      },
      lifeOf: (owner: LockOwner) => owner.host === 'here' && this.gone.has(owner.pid) ? 'gone' : 'unknown',
    };
  }

  async pass(ms: number): Promise<void> {
    for (const end = this.time + ms; this.time < end;) {
      this.time += 100;
      for (const beat of [...this.#beats]) {
        if (beat.at > this.time) continue;
        beat.at += beat.every;
        if (!this.gone.has(beat.pid) && !this.stopped.has(beat.pid)) beat.run();
      }
      for (let turn = 0; turn < 60; turn += 1) await Promise.resolve();
    }
  }

  take(pid: number, host?: string): Promise<DirectoryLock> {
    return DirectoryLock.take(this.system, '/data', this.world(pid, host));
  }
}

describe('directory lock', () => {
  test('FB-119: a second process is refused while the first lives, and told who it is', async () => {
    const machine = new Machine();
    const first = await machine.take(1);
    const error = await assertRejects(() => machine.take(2), StoreLockedError);
    assertMatch(error.message, /in use by process 1 on here/);
    await first.check();
    await first.release();
    const second = await machine.take(2);
    assertEquals(second.epoch, 2);
    assertEquals(await machine.system.list('/data'), ['LOCK.2']);
  });

  test('a lock whose process is gone is taken at once', async () => {
    const machine = new Machine();
    await machine.take(1);
    machine.gone.add(1);
    const before = machine.time;
    await machine.take(2);
    assertEquals(machine.time, before);
  });

  test('a lock of another machine is taken when it shows no life for a while', async () => {
    const machine = new Machine();
    await machine.take(1, 'there');
    machine.gone.add(1);
    const before = machine.time;
    await machine.take(2);
    assertEquals(machine.time - before >= 4_000, true);
  });

  test('of many starters one gets a stale lock', async () => {
    const machine = new Machine();
    await machine.take(1);
    machine.gone.add(1);
    const tries = await Promise.allSettled([2, 3, 4, 5].map((pid) => machine.take(pid)));
    assertEquals(tries.filter((one) => one.status === 'fulfilled').length, 1);
  });

  test('S5: an owner that was stopped too long acknowledges nothing, and its late writes are not read', async () => {
    const machine = new Machine();
    const lock = await machine.take(1);
    const openWith = (taken: DirectoryLock) =>
      FileJournal.open({ system: machine.system, directory: '/data/journal', checkOwner: () => taken.check() });
    const old = await openWith(lock);
    const { writer } = await old.claim('a', writerOf(1));
    await old.append('a', eventsOf('one'), 0, writer);
    machine.stopped.add(1);
    const second = await machine.take(2);
    const fresh = await openWith(second);
    machine.stopped.delete(1);
    await assertRejects(() => old.append('a', eventsOf('late'), 1, writer), StoreLockedError);
    assertEquals((await collect(fresh.read('a'))).map((event) => event.payload), ['one']);
    const claim = await fresh.claim('a', writerOf(2));
    await fresh.append('a', eventsOf('two'), 1, claim.writer);
    await fresh.close();
    const again = await openWith(second);
    assertEquals((await collect(again.read('a'))).map((event) => event.payload), ['one', 'two']);
    assertEquals(again.cut, []);
  });

  test('a lock that its process holds is taken as soon as the process is gone, and not before', async () => {
    const machine = new Machine();
    const held = new Set<string>();
    const holding = (pid: number): LockWorld => ({
      ...machine.world(pid, ''),
      hold: (path) => Promise.resolve(held.add(path)).then(() => () => void held.delete(path)),
      isHeld: (path) => Promise.resolve(held.has(path)),
    });
    await DirectoryLock.take(machine.system, '/data', holding(1));
    machine.stopped.add(1);
    const refused = DirectoryLock.take(machine.system, '/data', holding(2));
    await machine.pass(3_000);
    assertEquals([...held], ['/data/LOCK.1.held']);
    // The kernel does this.
    held.clear();
    const before = machine.time;
    const lock = await refused;
    assertEquals(machine.time - before <= 200, true, `${machine.time - before} ms`);
    await lock.release();
    assertEquals(held.size, 0);
    assertEquals(lock.epoch, 2);
  });

  test('a lock file that was never written to the end is judged by time alone', async () => {
    const machine = new Machine();
    machine.system.put('/data/LOCK.7', new Uint8Array(0));
    const lock = await machine.take(2);
    assertEquals(lock.epoch, 8);
    assertEquals(machine.time >= 4_000, true);
  });
});
