/** The suites against files: on a real disk, and on a file system in memory. */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import process from 'node:process';
import { assertEquals, assertMatch, assertRejects } from '@std/assert';
import {
  checkJournal,
  type FileStores,
  type FileSystem,
  type LockWorld,
  nodeFileSystem,
  openFileStores,
} from '../../adapters/shared/file_journal/mod.ts';
import { realLockWorld } from '../../adapters/shared/file_journal/lock_world.ts';
import { repositoryRoot, runtimeCommand } from '../../demo/runtime_commands.ts';
import { OptionsError } from '../../src/mod.ts';
import { StorageError, StoreLockedError } from '../../src/persistence/mod.ts';
import { MemoryFileSystem } from '../persistence/file_journal/memory_file_system.ts';
import { durableStateContract } from './durable_state_contract.ts';
import { collect, eventsOf, journalContract, writerOf } from './journal_contract.ts';
import { snapshotStoreContract } from './snapshot_store_contract.ts';

async function onDisk(run: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(`${tmpdir()}/singlet-stores-`);
  try {
    await run(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Counts the bytes that are read of a file system from now on. */
function countReads(system: FileSystem): () => number {
  let bytes = 0;
  const open = system.open.bind(system);
  system.open = async (path, mode) => {
    const file = await open(path, mode);
    const read = file.read.bind(file);
    file.read = async (target, position) => {
      const count = await read(target, position);
      bytes += count;
      return count;
    };
    return file;
  };
  return () => bytes;
}

/** Stores, the means to open them again, and their end. */
async function setup(keepSnapshots?: number) {
  const directory = await mkdtemp(`${tmpdir()}/singlet-stores-`);
  const system = { ...nodeFileSystem };
  const taken = countReads(system);
  const options = { system, segmentBytes: 2_000, ...(keepSnapshots === undefined ? {} : { keepSnapshots }) };
  let stores: FileStores = await openFileStores(directory, options);
  return {
    stores,
    taken,
    reopen: async () => {
      await stores.close();
      stores = await openFileStores(directory, options);
      return stores;
    },
    end: async () => {
      await stores.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

journalContract('files', async () => {
  const { stores, reopen, taken, end } = await setup();
  return { journal: stores.journal, reopen: async () => (await reopen()).journal, taken, end };
});

durableStateContract('files', async () => {
  const { stores, reopen, end } = await setup();
  return { store: stores.durableState, reopen: async () => (await reopen()).durableState, end };
});

snapshotStoreContract('files', async (keepN) => {
  const { stores, end } = await setup(keepN);
  return { store: stores.snapshots, end };
}, { defaultKeepN: 3 });

journalContract('files in memory', async () => {
  const system = new MemoryFileSystem();
  const taken = countReads(system);
  let stores = await openFileStores('/data/x', { system, segmentBytes: 2_000 });
  return {
    journal: stores.journal,
    reopen: async () => {
      await stores.close();
      stores = await openFileStores('/data/x', { system: system.after('process'), segmentBytes: 2_000 });
      return stores.journal;
    },
    taken,
    end: () => stores.close(),
  };
});

const root = process.getuid?.() === 0;
/** Where not even root may make a file. */
const kernelDirectory = '/sys/kernel';

describe('file stores', () => {
  test('FB-119: one writer for a directory', () =>
    onDisk(async (directory) => {
      const stores = await openFileStores(directory);
      await assertRejects(() => openFileStores(directory), StoreLockedError, 'one writer');
      await stores.close();
      await (await openFileStores(directory)).close();
    }));

  test('a missing parent, a bad path and a file in the way are one clear error', () =>
    onDisk(async (directory) => {
      const missing = await assertRejects(() => openFileStores(`${directory}/a/b`), StorageError);
      assertMatch(missing.message, /cannot make .*\/a\/b: there is no such file or directory \(ENOENT\)/);
      await assertRejects(() => openFileStores(''), OptionsError, 'directory');
      await assertRejects(() => openFileStores(directory, { keepSnapshots: -1 }), OptionsError, 'keepSnapshots');
      const file = await nodeFileSystem.open(`${directory}/file`, 'create');
      await file.close();
      await assertRejects(() => openFileStores(`${directory}/file`), StorageError, 'ENOTDIR');
    }));

  test(
    'a directory that may not be written is one clear error',
    { skip: root && !existsSync(kernelDirectory) ? 'root may write everywhere here' : false },
    () =>
      onDisk(async (directory) => {
        if (!root) await chmod(directory, 0o500);
        const error = await assertRejects(() => openFileStores(root ? kernelDirectory : directory), StorageError);
        assertMatch(error.message, /EACCES|EPERM|EROFS/);
        await chmod(directory, 0o700);
      }),
  );

  test('Deno without its permission is told which one it needs', () =>
    onDisk(async (directory) => {
      const { file, args } = runtimeCommand('deno', true);
      const flags = args.filter((arg) => arg !== '--allow-net');
      const stderr = await new Promise<string>((resolve) => {
        const program = ['--no-prompt', 'test/contract/journal_writer.ts', directory];
        execFile(file, [...flags, ...program], { cwd: repositoryRoot }, (_error, _stdout, text) => resolve(text));
      });
      assertMatch(stderr, /--allow-read and --allow-write for this directory/);
    }));

  test(
    'a successor on Deno sees at once that its predecessor on Deno was killed, with no more permissions than for the directory',
    { skip: 'Deno' in globalThis ? false : 'only Deno locks files' },
    () =>
      onDisk(async (directory) => {
        const { file, args } = runtimeCommand('deno', true);
        const allowed = [`--allow-read=${directory}`, `--allow-write=${directory}`];
        const flags = args.flatMap((arg) => arg === '--allow-net' ? ['--no-prompt', ...allowed] : [arg]);
        const child = spawn(file, [...flags, 'test/contract/journal_writer.ts', directory], {
          cwd: repositoryRoot,
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
        await new Promise<void>((resolve) => {
          child.stdout.on('data', (bytes) => String(bytes).includes('ack') && resolve());
          child.on('close', () => resolve());
        });
        await assertRejects(() => openFileStores(directory), StoreLockedError);
        child.kill('SIGKILL');
        await closed;
        const world = realLockWorld();
        let naps = 0;
        const lockWorld: LockWorld = {
          ...world,
          sleep: (ms) => {
            naps += 1;
            return world.sleep(ms);
          },
        };
        const stores = await openFileStores(directory, { lockWorld });
        // One for a kernel that is slow to clean up.
        assertEquals(naps <= 3, true, `${naps} naps`);
        await stores.close();
        world.end();
      }),
  );

  test('FB-123: a directory that was away is used again once it is back', () =>
    onDisk(async (parent) => {
      const directory = `${parent}/stores`;
      await mkdir(directory);
      const stores = await openFileStores(directory, { segmentBytes: 1_000 });
      const { writer } = await stores.journal.claim('a', writerOf(1));
      let acked = 0;
      const put = () => stores.journal.append('a', eventsOf(acked + 1), acked, writer).then(() => acked += 1);
      for (let tries = 0; tries < 5; tries += 1) await put();
      await rename(directory, `${parent}/away`);
      for (let tries = 0; tries < 40; tries += 1) await put().catch(() => {});
      const error = await assertRejects(
        () => stores.snapshots.save('a', { sequenceNr: 1, state: 1, version: 0 }),
        StorageError,
      );
      assertEquals(error.code, 'ENOENT');
      await rename(`${parent}/away`, directory);
      for (let tries = 0; tries < 20; tries += 1) await put();
      await stores.snapshots.save('a', { sequenceNr: 1, state: 1, version: 0 });
      await stores.close();
      const again = await openFileStores(directory);
      assertEquals((await collect(again.journal.read('a'))).length, acked);
      await again.close();
    }));

  test('check leaves everything as it is', () =>
    onDisk(async (directory) => {
      const stores = await openFileStores(directory);
      const { writer } = await stores.journal.claim('a', writerOf(1));
      await stores.journal.append('a', eventsOf(1, 2), 0, writer);
      await stores.close();
      const before = await nodeFileSystem.list(`${directory}/journal`);
      const [journal, state] = await checkJournal(directory);
      assertEquals([journal?.log, journal?.records, journal?.ids, journal?.cut, journal?.damage], [
        'journal',
        2,
        1,
        [],
        undefined,
      ]);
      assertEquals(state?.log, 'state');
      assertEquals(await nodeFileSystem.list(`${directory}/journal`), before);
      await assertRejects(() => checkJournal(`${directory}/nowhere`), StorageError, 'ENOENT');
    }));
});
