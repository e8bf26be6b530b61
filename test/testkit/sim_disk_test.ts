/** The simulated disk: what it loses, what it keeps, and what it refuses. */
import { describe, test } from 'node:test';
import { assert, assertEquals, assertRejects } from '@std/assert';
import type { FileSystem } from '../../src/persistence/file_journal/file_system.ts';
import { writeAll } from '../../src/persistence/file_journal/file_system.ts';
import { StorageError } from '../../src/persistence/errors.ts';
import { Prng } from '../../src/testkit/prng.ts';
import { SimDisk } from '../../src/testkit/sim_disk.ts';
import { sectorBytes, SimDiskFile } from '../../src/testkit/sim_disk_file.ts';
import { World } from '../../src/testkit/sim_world.ts';

const bytes = (length: number, value: number) => new Uint8Array(length).fill(value);

/** Runs what uses a disk until it has ended. */
async function finish<T>(world: World, promise: Promise<T>): Promise<T> {
  let ended = false;
  const settled = () => void (ended = true);
  promise.then(settled, settled);
  assert(await world.advanceUntil(() => ended, 60_000));
  return await promise;
}

async function write(system: FileSystem, path: string, value: number, sync: boolean): Promise<void> {
  const file = await system.open(path, 'create');
  await writeAll(file, bytes(1_300, value), 0);
  if (sync) await file.sync();
}

async function content(system: FileSystem, path: string): Promise<Uint8Array> {
  const file = await system.open(path, 'read');
  const target = new Uint8Array(await file.size());
  await file.read(target, 0);
  return target;
}

describe('a file of the simulated disk', () => {
  test('keeps what was synced, and of the rest any sectors', () => {
    const random = new Prng('file');
    const seen = new Set<string>();
    for (let round = 0; round < 60; round += 1) {
      const file = new SimDiskFile();
      file.write(bytes(700, 1), 0);
      file.sync();
      file.write(bytes(1_000, 2), 700);
      const left = file.afterPowerLoss(random, 0.5).content;
      assertEquals(left.subarray(0, 700), bytes(700, 1));
      assert(left.length === 700 || left.length === 1_700);
      for (const [index, value] of left.entries()) assert(index < 700 || value === 2 || value === 0);
      seen.add(Array.from({ length: 4 }, (_, sector) => left[sector * sectorBytes + 500] ?? '-').join());
    }
    assert(seen.size > 4, `only ${[...seen].join(' ')}`);
    const file = new SimDiskFile();
    file.write(bytes(10, 1), 0);
    assertEquals(file.afterPowerLoss(random, 0).content.length, 0);
    assertEquals(file.afterPowerLoss(random, 1).content, bytes(10, 1));
  });

  test('forgets what a failed sync did not write, until it is written again', () => {
    let lost = 0;
    for (let round = 0; round < 20; round += 1) {
      const random = new Prng(`sync ${round}`);
      const file = new SimDiskFile();
      file.write(bytes(10, 1), 0);
      file.failSync(random);
      file.sync();
      assertEquals(file.content, bytes(10, 1));
      const left = file.afterPowerLoss(random, 1).content;
      if (left[0] === 0) lost += 1;
      file.write(bytes(10, 1), 0);
      file.sync();
      assertEquals(file.afterPowerLoss(random, 0).content, bytes(10, 1));
    }
    assert(lost > 3 && lost < 17, `${lost} of 20`);
  });
});

describe('the simulated disk', () => {
  test('names are durable once their directory is synced, and a rename is one change', async () => {
    const ends = new Set<string>();
    for (let seed = 0; seed < 30; seed += 1) {
      const world = new World({ seed, drain: 'always' });
      const disk = new SimDisk(world, 'd');
      const system = disk.mount(undefined);
      await finish(world, system.makeDirectory('/x'));
      await finish(world, write(system, '/x/a', 1, true));
      await finish(world, system.syncDirectory('/x'));
      await finish(world, write(system, '/x/b', 2, true));
      await finish(world, system.rename('/x/b', '/x/a'));
      const image = disk.imageAfterPowerLoss();
      const imageEnd = (await content(image, '/x/a'))[0];
      assert(imageEnd === 1 || imageEnd === 2);
      disk.losePower();
      const [first] = await finish(world, content(system, '/x/a'));
      ends.add(`${first} ${(await finish(world, system.list('/x'))).join()}`);
    }
    assert(ends.has('1 a') && ends.has('2 a'), [...ends].join('; '));
    assert([...ends].every((end) => /^[12] a(,b)?$/.test(end)), [...ends].join('; '));
  });

  test('takes time, and can be slow, full, broken and away', async () => {
    const world = new World({ seed: 1, drain: 'always' });
    const disk = new SimDisk(world, 'd');
    const system = disk.mount(undefined);
    await finish(world, system.makeDirectory('/x'));
    assert(world.now > 0);
    for (const [kind, code] of [['full', 'ENOSPC'], ['away', 'ENOENT']] as const) {
      disk.fault(kind, 1_000);
      const error = await assertRejects(() => finish(world, write(system, '/x/a', 1, true)), StorageError);
      assertEquals(error.code, code);
      disk.endFaults();
    }
    disk.fault('broken', 1e6);
    let failed = 0;
    for (let round = 0; round < 20; round += 1) {
      await finish(world, write(system, `/x/${round}`, 1, true)).catch((error) => {
        assertEquals(error.code, 'EIO');
        failed += 1;
      });
    }
    assert(failed > 5, `${failed} of 20`);
    disk.endFaults();
    const before = world.now;
    disk.fault('slow', 1e6);
    await finish(world, write(system, '/x/slow', 1, true));
    assert(world.now - before > 100);
    assertEquals(disk.statistics.diskFaults > failed, true);
  });

  test('what was under way when the power went is never answered', async () => {
    const world = new World({ seed: 1, drain: 'always' });
    const disk = new SimDisk(world, 'd');
    let answered = false;
    disk.mount(undefined).makeDirectory('/x').then(() => answered = true);
    disk.losePower();
    await world.advance(10_000);
    assertEquals(answered, false);
    assertEquals(disk.statistics.powerLosses, 1);
  });
});
