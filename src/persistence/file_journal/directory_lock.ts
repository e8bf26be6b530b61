/**
 * One writer per directory. Each tenure is a file `LOCK.<epoch>` that is created exclusively, so that of several starters one
 * gets each epoch; the highest epoch has the directory. A lock is stale when its process is known to be gone, or when its
 * owner has not shown life for a while on the watcher's own monotonic clock. Safety rests on none of that: an owner looks for
 * a later lock once it has written and before it acknowledges, and a successor reads after it has made its lock. So the
 * successor has whatever was acknowledged, whenever it took over.
 */
import { StorageError, StoreLockedError } from '../mod.ts';
import { type FileSystem, readFile, writeAll } from './file_system.ts';

/** What the lock takes from the world. */
export interface LockWorld {
  /** Monotonic milliseconds. */
  now(): number;
  sleep(ms: number): Promise<void>;
  /** Runs `run` again and again until the answer is called; keeps no process alive. */
  every(ms: number, run: () => void): () => void;
  /** Names this machine, process and journal; `uid` is random. */
  readonly self: LockOwner;
  /** Whether the owner is certainly there, or certainly gone. */
  lifeOf(owner: LockOwner): 'alive' | 'gone' | 'unknown';
  /** Locks this file, which it makes, until the process ends or the answer is called. Undefined: this runtime cannot. */
  hold?(path: string): Promise<(() => void) | undefined>;
  /** Whether a process that lives has locked this file. Undefined: nobody can say. */
  isHeld?(path: string): Promise<boolean | undefined>;
}

/** The process that has a directory. */
export interface LockOwner {
  readonly host: string;
  readonly pid: number;
  readonly uid: string;
}

interface LockContent extends LockOwner {
  readonly beat: number;
  /** Its owner holds the file beside it. */
  readonly held?: boolean;
  readonly released: boolean;
}

/** A lock without a sign of life for this long is stale. */
const staleMs = 4_000;
const beatMs = 500;
const pollMs = 100;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class DirectoryLock {
  readonly epoch: number;
  readonly #system: FileSystem;
  readonly #directory: string;
  readonly #world: LockWorld;
  #beat = 0;
  #letGo: (() => void) | undefined;
  #stop: () => void = () => {};
  #beating: Promise<void> = Promise.resolve();
  #lost: StoreLockedError | undefined = undefined;

  private constructor(system: FileSystem, directory: string, world: LockWorld, epoch: number) {
    this.#system = system;
    this.#directory = directory;
    this.#world = world;
    this.epoch = epoch;
    this.#stop = world.every(beatMs, () => {
      this.#beating = this.#beating.then(() => this.#showLife()).catch(() => {});
    });
  }

  /**
   * Takes the directory; waits up to `staleMs` to see whether a lock whose process cannot be asked is stale. The epoch is
   * above `usedEpoch`, also where somebody has deleted the lock files.
   * @throws StoreLockedError
   */
  static async take(system: FileSystem, directory: string, world: LockWorld, usedEpoch = 0): Promise<DirectoryLock> {
    for (;;) {
      const highest = await highestLock(system, directory);
      if (highest !== undefined) await waitUntilFree(system, directory, world, highest);
      const epoch = Math.max(highest ?? 0, usedEpoch) + 1;
      if (!await create(system, directory, epoch, world.self)) continue;
      const now = await highestLock(system, directory);
      if (now === epoch) {
        await removeOlder(system, directory, epoch);
        const lock = new DirectoryLock(system, directory, world, epoch);
        await lock.#hold();
        return lock;
      }
      await system.remove(lockPath(directory, epoch));
    }
  }

  /** @throws StoreLockedError once somebody else has the directory */
  async check(): Promise<void> {
    if (this.#lost !== undefined) throw this.#lost;
    await this.#look();
  }

  async release(): Promise<void> {
    this.#stop();
    await this.#beating;
    if (this.#lost === undefined) await this.#put(true).catch(() => {});
    this.#letGo?.();
    if (this.#letGo !== undefined) await this.#system.remove(heldPath(this.#directory, this.epoch)).catch(() => {});
  }

  /** Others then know at once when this process has ended. */
  async #hold(): Promise<void> {
    this.#letGo = await this.#world.hold?.(heldPath(this.#directory, this.epoch));
    if (this.#letGo !== undefined) await this.#put(false).catch(() => {});
  }

  async #look(): Promise<void> {
    const highest = await highestLock(this.#system, this.#directory);
    if (highest === this.epoch) return;
    this.#lost = new StoreLockedError(this.#directory, `a later owner (lock ${highest ?? 'removed'})`);
    this.#stop();
    throw this.#lost;
  }

  async #showLife(): Promise<void> {
    await this.#look();
    this.#beat += 1;
    await this.#put(false);
  }

  async #put(released: boolean): Promise<void> {
    const file = await this.#system.open(lockPath(this.#directory, this.epoch), 'write');
    try {
      await writeAll(file, content(this.#world.self, this.#beat, released, this.#letGo !== undefined), 0);
    } finally {
      await file.close();
    }
  }
}

function lockPath(directory: string, epoch: number): string {
  return `${directory}/LOCK.${epoch}`;
}

function heldPath(directory: string, epoch: number): string {
  return `${lockPath(directory, epoch)}.held`;
}

async function lockEpochs(system: FileSystem, directory: string): Promise<readonly number[]> {
  const names = await system.list(directory);
  return names.filter((name) => /^LOCK\.\d{1,15}$/.test(name)).map((name) => Number(name.slice(5)));
}

async function highestLock(system: FileSystem, directory: string): Promise<number | undefined> {
  const epochs = await lockEpochs(system, directory);
  return epochs.length === 0 ? undefined : Math.max(...epochs);
}

async function removeOlder(system: FileSystem, directory: string, epoch: number): Promise<void> {
  for (const older of await lockEpochs(system, directory)) {
    if (older >= epoch) continue;
    await system.remove(heldPath(directory, older));
    await system.remove(lockPath(directory, older));
  }
}

/** False when somebody else was first. */
async function create(system: FileSystem, directory: string, epoch: number, self: LockOwner): Promise<boolean> {
  const path = lockPath(directory, epoch);
  try {
    const file = await system.open(path, 'create');
    try {
      await writeAll(file, content(self, 0, false, false), 0);
    } finally {
      await file.close();
    }
    // Epochs must not go back when the power goes.
    await system.syncDirectory(directory);
    return true;
  } catch (error) {
    if (error instanceof StorageError && error.code === 'EEXIST') return false;
    await system.remove(path).catch(() => {});
    throw error;
  }
}

/** Padded, so that a later content never leaves the end of an earlier one. */
function content(owner: LockOwner, beat: number, released: boolean, held: boolean): Uint8Array<ArrayBuffer> {
  const text = JSON.stringify({ host: owner.host, pid: owner.pid, uid: owner.uid, beat, released, held });
  return encoder.encode(`${text.padEnd(511)}\n`);
}

async function readLock(system: FileSystem, directory: string, epoch: number): Promise<string | undefined> {
  const bytes = await readFile(system, lockPath(directory, epoch));
  return bytes === undefined ? undefined : decoder.decode(bytes);
}

function parse(text: string): LockContent | undefined {
  try {
    return JSON.parse(text) as LockContent;
  } catch {
    // Being written, or its writer died over it: time will tell.
    return undefined;
  }
}

async function waitUntilFree(
  system: FileSystem,
  directory: string,
  world: LockWorld,
  epoch: number,
): Promise<void> {
  let seen: string | undefined;
  let since = world.now();
  let changes = 0;
  for (;;) {
    const text = await readLock(system, directory, epoch);
    if (text === undefined) return;
    const owner = parse(text);
    if (owner?.released === true) return;
    const life = owner === undefined ? 'unknown' : world.lifeOf(owner);
    if (life === 'gone') return;
    if (owner?.held === true && await world.isHeld?.(heldPath(directory, epoch)) === false) return;
    if (life === 'alive') throw new StoreLockedError(directory, describe(owner as LockContent));
    if (text !== seen) {
      changes += 1;
      // The first look is no change, and the second may be a content that was half written at the first.
      if (changes > 2 && owner !== undefined) throw new StoreLockedError(directory, describe(owner));
      seen = text;
      since = world.now();
    }
    if (world.now() - since >= staleMs) return;
    await world.sleep(pollMs);
  }
}

function describe({ pid, host }: LockContent): string {
  return `process ${pid}${host === '' ? '' : ` on ${host}`}`;
}
