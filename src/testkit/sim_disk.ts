/**
 * A disk of the simulated world. Each operation takes virtual time; what was not synced is lost, in part, when the power
 * goes; a process that is killed leaves what it has written, and perhaps half of its last write. It can be slow, full,
 * read-only, broken or away.
 */
import type { FileHandle, FileSystem } from '../persistence/file_journal/file_system.ts';
import { StorageError } from '../persistence/errors.ts';
import { Prng } from './prng.ts';
import { SimDiskFile } from './sim_disk_file.ts';
import type { SimProcess } from './sim_process.ts';
import type { World } from './sim_world.ts';

/**
 * `slow`: up to seconds for each operation. `full`: writes fail, half-way too. `broken`: writes and syncs fail now and then.
 * `away`: nothing is found.
 */
export type DiskFaultKind = 'slow' | 'full' | 'broken' | 'away';

export const diskFaultKinds: readonly DiskFaultKind[] = ['slow', 'full', 'broken', 'away'];

const codes = { full: 'ENOSPC', broken: 'EIO', away: 'ENOENT' } as const;

/** A change of names that has not reached the medium; all of it does or nothing. */
type NameChange = readonly (readonly [path: string, file: SimDiskFile | undefined])[];

type Operation = 'look' | 'write' | 'name' | 'sync';

/** What comes of an operation besides success and an error as a whole; `killed`: nobody waits for it any more. */
type Mishap = 'full' | 'broken' | 'killed' | undefined;

type Perform = <T>(operation: Operation, path: string, carryOut: (mishap: Mishap) => T) => Promise<T>;

/** A simulated disk that forgets what was not synced when the power fails, tears writes, and fails on demand. */
export class SimDisk {
  readonly statistics = { diskFaults: 0, powerLosses: 0, tornWrites: 0 };
  readonly #world: World;
  readonly #random: Prng;
  #directories = new Set<string>();
  #names = new Map<string, SimDiskFile>();
  #durableNames = new Map<string, SimDiskFile>();
  #changes: NameChange[] = [];
  #faults: { readonly kind: DiskFaultKind; readonly until: number }[] = [];
  /** Counts losses of power: what was under way at one is never carried out. */
  #power = 0;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#random = new Prng(`${world.seed}/disk/${name}`);
  }

  fault(kind: DiskFaultKind, forMs: number): void {
    this.#faults.push({ kind, until: this.#world.now + forMs });
  }

  endFaults(): void {
    this.#faults = [];
  }

  /** The power goes and comes back at once; who uses the disk must be ended by the caller. */
  losePower(): void {
    this.statistics.powerLosses++;
    this.#power++;
    this.#take(this.#afterPowerLoss(this.#random));
  }

  /** The disk as the loss of power at this moment would leave it, for a witness: its operations take no time. */
  imageAfterPowerLoss(): FileSystem {
    const image = new SimDisk(this.#world, 'image');
    image.#take(this.#afterPowerLoss(new Prng(`${this.#world.seed}/image`)));
    return image.#fileSystem((_operation, _path, carryOut) => Promise.resolve().then(() => carryOut(undefined)));
  }

  /** As `process` uses it; undefined: somebody outside of all hosts, who ends with the power. */
  mount(process: SimProcess | undefined): FileSystem {
    return this.#fileSystem((operation, path, carryOut) => this.#perform(process, operation, path, carryOut));
  }

  #perform<T>(
    process: SimProcess | undefined,
    operation: Operation,
    path: string,
    carryOut: (mishap: Mishap) => T,
  ): Promise<T> {
    const random = this.#random;
    const slow = this.#faultNow('slow');
    const work = slow
      ? random.between(0, 1_500)
      : operation === 'sync'
      ? random.between(0.1, 3)
      : random.between(0, 0.1);
    const power = this.#power;
    const promise = new Promise<T>((resolve, reject) => {
      this.#world.at(this.#world.now + work, () => {
        if (power !== this.#power) return;
        let settle: () => void;
        try {
          const value = carryOut(this.#outcome(process, operation, path));
          settle = () => resolve(value);
        } catch (error) {
          settle = () => reject(error);
        }
        if (process === undefined) settle();
        else this.#world.schedule(this.#world.now, process, 'io', settle);
      });
    });
    return process === undefined ? promise : process.track(promise);
  }

  /** Throws for an operation that fails as a whole. */
  #outcome(process: SimProcess | undefined, operation: Operation, path: string): Mishap {
    if (process?.alive === false) return 'killed';
    if (this.#faultNow('away')) throw this.#failure('away', path);
    const full = this.#faultNow('full') && (operation === 'write' || operation === 'name');
    const broken = this.#faultNow('broken') && operation !== 'look' && this.#random.chance(0.3);
    const kind = full ? 'full' : broken ? 'broken' : undefined;
    if (kind === undefined || operation === 'write' || operation === 'sync') return kind;
    throw this.#failure(kind, path);
  }

  #faultNow(kind: DiskFaultKind): boolean {
    const { now } = this.#world;
    return this.#faults.some((fault) => fault.kind === kind && fault.until > now);
  }

  #failure(kind: keyof typeof codes, path: string): StorageError {
    this.statistics.diskFaults++;
    return new StorageError(`the simulated disk fails at ${path} (${codes[kind]})`, codes[kind]);
  }

  #fileSystem(perform: Perform): FileSystem {
    return {
      makeDirectory: (path) =>
        perform('name', path, (fault) => {
          // Directories are made once, long before anything is at stake.
          if (fault !== 'killed') this.#directories.add(path);
        }),
      list: (path) => perform('look', path, () => this.#list(path)),
      open: (path, mode) =>
        perform(mode === 'create' ? 'name' : 'look', path, () => {
          const found = this.#names.get(path);
          if (mode === 'create' && found !== undefined) throw notPossible('EEXIST', path);
          if (mode !== 'create' && found === undefined) throw notPossible('ENOENT', path);
          const file = found ?? new SimDiskFile();
          if (found === undefined) this.#rename([[path, file]]);
          return this.#handle(perform, path, file);
        }),
      rename: (from, to) =>
        perform('name', to, () => {
          const file = this.#names.get(from);
          if (file === undefined) throw notPossible('ENOENT', from);
          this.#rename([[from, undefined], [to, file]]);
        }),
      remove: (path) =>
        perform('name', path, () => {
          if (this.#names.has(path)) this.#rename([[path, undefined]]);
        }),
      syncDirectory: (path) =>
        perform('sync', path, (fault) => {
          if (fault === 'killed') return;
          if (fault !== undefined) throw this.#failure('broken', path);
          const here = (change: NameChange) => change.some(([name]) => directoryOf(name) === path);
          for (const change of this.#changes.filter(here)) applyTo(this.#durableNames, change);
          this.#changes = this.#changes.filter((change) => !here(change));
        }),
    };
  }

  #handle(perform: Perform, path: string, file: SimDiskFile): FileHandle {
    return {
      size: () => perform('look', path, () => file.content.length),
      read: (target, position) =>
        perform('look', path, () => {
          const bytes = file.content.subarray(position, position + target.length);
          target.set(bytes);
          return bytes.length;
        }),
      write: (bytes, position) => {
        const taken = bytes.slice();
        return perform('write', path, (fault) => this.#write(file, taken, position, fault, path));
      },
      truncate: (size) =>
        perform('write', path, (fault) => {
          if (fault === 'broken') throw this.#failure(fault, path);
          if (fault !== 'killed') file.truncate(size);
        }),
      sync: () =>
        perform('sync', path, (fault) => {
          if (fault === 'killed') return;
          if (fault === undefined) return file.sync();
          file.failSync(this.#random);
          throw this.#failure('broken', path);
        }),
      close: () => Promise.resolve(),
    };
  }

  #write(
    file: SimDiskFile,
    bytes: Uint8Array,
    position: number,
    fault: Mishap,
    path: string,
  ): number {
    const short = fault !== undefined || this.#random.chance(0.02);
    const count = short ? this.#random.integer(fault === undefined ? 1 : 0, bytes.length) : bytes.length;
    if (fault !== undefined) this.statistics.tornWrites++;
    file.write(bytes.subarray(0, count), position);
    if (fault === 'full' || fault === 'broken') {
      // Half of the time the caller learns how much was written, and gets the error for the rest.
      if (count === 0 || this.#random.chance(0.5)) throw this.#failure(fault, path);
    }
    return count;
  }

  #list(path: string): readonly string[] {
    if (!this.#directories.has(path)) throw notPossible('ENOENT', path);
    return [...this.#names.keys(), ...this.#directories].filter((name) => directoryOf(name) === path)
      .map((name) => name.slice(path.length + 1)).sort();
  }

  #rename(change: NameChange): void {
    applyTo(this.#names, change);
    this.#changes.push(change);
  }

  #afterPowerLoss(random: Prng): SimDisk {
    const share = random.pick([0, 0.5, 1]);
    const left = new SimDisk(this.#world, 'left');
    const names = new Map(this.#durableNames);
    for (const change of this.#changes) if (random.chance(share)) applyTo(names, change);
    const files = new Map<SimDiskFile, SimDiskFile>();
    for (const [path, file] of names) {
      let after = files.get(file);
      if (after === undefined) files.set(file, after = file.afterPowerLoss(random, share));
      left.#names.set(path, after);
      left.#durableNames.set(path, after);
    }
    for (const directory of this.#directories) left.#directories.add(directory);
    return left;
  }

  #take(other: SimDisk): void {
    this.#directories = other.#directories;
    this.#names = other.#names;
    this.#durableNames = other.#durableNames;
    this.#changes = [];
  }
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function applyTo(names: Map<string, SimDiskFile>, change: NameChange): void {
  for (const [path, file] of change) {
    if (file === undefined) names.delete(path);
    else names.set(path, file);
  }
}

function notPossible(code: string, path: string): StorageError {
  return new StorageError(`cannot use ${path} (${code})`, code);
}
