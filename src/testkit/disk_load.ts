/** Stores for the persistent singletons of a run, their witness, and what can go wrong with them. */
import { StoreDamagedError } from '../persistence/errors.ts';
import {
  FileJournal,
  FileSnapshotStore,
  type FileStores,
  type LockWorld,
  openStores,
} from '../persistence/file_journal/mod.ts';
import type { Journal } from '../persistence/journal.ts';
import type { PersistenceStores } from '../persistence/stores.ts';
import { EventBook } from './event_book.ts';
import type { Prng } from './prng.ts';
import { databaseFaultKinds, SimDatabase } from './sim_database.ts';
import { diskFaultKinds, SimDisk } from './sim_disk.ts';
import type { SimProcess } from './sim_process.ts';
import { SimulationError, type World } from './sim_world.ts';

export interface DiskSettings {
  /** `files`: all nodes are on one machine, and who hosts opens the directory. `database`: one store for all. */
  readonly store: 'files' | 'database';
  readonly segmentBytes: number;
  readonly snapshotEvery: number;
  readonly keepSnapshots: number;
  readonly deleteEvents: boolean;
  /**
   * What a process learns of another one that has the lock: whether it exists, nothing, or that it is gone, be that so or
   * not, as in containers that have one host name and processes of their own.
   */
  readonly life: 'known' | 'unknown' | 'mistaken';
}

/** Above all that a run can reach. */
const lastEpoch = 1e9;

export interface OpenedStores extends PersistenceStores {
  readonly journal: Journal;
  close(): Promise<void>;
}

export class DiskLoad {
  readonly settings: DiskSettings;
  readonly book: EventBook;
  readonly #world: World;
  readonly #random: Prng;
  readonly #disk: SimDisk;
  readonly #database: SimDatabase | undefined;
  #uids = 0;

  constructor(world: World, random: Prng) {
    this.#world = world;
    this.#random = random;
    this.settings = drawDisks(random);
    this.book = new EventBook(world);
    this.#database = this.settings.store === 'database'
      ? new SimDatabase(world, this.settings.segmentBytes)
      : undefined;
    this.#disk = this.#database?.disk ?? new SimDisk(world, 'machine');
  }

  /** `disk-slow`, `database-late` and so on for some milliseconds, `disk-power` once. Answers whether it was one of these. */
  action(action: string, argument: string): boolean {
    const forMs = Number(argument);
    if (action === 'disk-power') {
      this.#losePower();
      return true;
    }
    const disk = diskFaultKinds.find((kind) => action === `disk-${kind}`);
    if (disk !== undefined) this.#disk.fault(disk, forMs);
    const database = databaseFaultKinds.find((kind) => action === `database-${kind}`);
    if (database !== undefined) this.#database?.fault(database, forMs);
    return disk !== undefined || database !== undefined;
  }

  endFaults(): void {
    this.#disk.endFaults();
    this.#database?.endFaults();
  }

  /** For one instance of one persistent singleton. */
  async open(process: SimProcess, id: string): Promise<OpenedStores> {
    if (this.#database !== undefined) return { ...this.#database.client(process), close: () => Promise.resolve() };
    const { segmentBytes, keepSnapshots } = this.settings;
    const system = this.#disk.mount(process);
    const stores: FileStores = await openStores({ system, lockWorld: this.#lockWorld(process) }, directoryOf(id), {
      segmentBytes,
      keepSnapshots: keepSnapshots + 1,
      onWarning: (message) => this.#world.record('journal', process.name, message),
    });
    return stores;
  }

  statistics(): Record<string, number> {
    return { ...this.book.statistics, ...this.#disk.statistics };
  }

  /** Were the power to go now, everything acknowledged would have to be there afterwards. */
  async checkDisk(): Promise<void> {
    const system = this.#disk.imageAfterPowerLoss();
    for (const id of this.book.ids()) {
      const root = this.#database === undefined ? directoryOf(id) : '/database';
      const journal = await FileJournal.open({ system, directory: `${root}/journal`, epoch: lastEpoch });
      const snapshots = await FileSnapshotStore.open({ system, directory: `${root}/snapshots` });
      const snapshot = await snapshots.loadLatest(id);
      const state = (snapshot?.state ?? []) as readonly string[];
      const events: string[] = [];
      for await (const { payload } of journal.read(id, state.length + 1)) events.push(payload as string);
      this.book.left(id, 1, [...state, ...events]);
    }
  }

  /** A failure that the faults of a run explain; anything else ends the run. */
  judge(id: string, error: unknown): void {
    if (error instanceof StoreDamagedError || (error as Error).name === 'RecoveryError') {
      this.#world.fail(new SimulationError('J1', `${id} cannot recover: ${(error as Error).message}`));
    }
  }

  /** Of the machine that all nodes share, or of the database's. */
  #losePower(): void {
    if (this.#database !== undefined) return this.#database.crash();
    this.#disk.losePower();
    for (const { name } of this.#world.hosts) {
      this.#world.crash(name, { power: true, restartAfterMs: this.#random.between(50, 6_000) });
    }
  }

  #lockWorld(process: SimProcess): LockWorld {
    const uid = `${process.name}-${process.incarnation}-${this.#uids++}`;
    const pidOf = ({ host, incarnation }: SimProcess) => 1 + host.index + 100 * incarnation;
    const exists = (pid: number) => this.#world.hosts.some(({ process: other }) => other && pidOf(other) === pid);
    return {
      self: { host: 'machine', pid: pidOf(process), uid },
      now: () => process.clock.now(),
      sleep: (ms) => process.track(new Promise((resolve) => void process.timers.set(ms, resolve))),
      every: (ms, run) => {
        let stopped = false;
        const again = () => {
          if (stopped) return;
          run();
          process.timers.set(ms, again);
        };
        process.timers.set(ms, again);
        return () => {
          stopped = true;
        };
      },
      lifeOf: ({ pid }) => {
        if (this.settings.life === 'mistaken') return 'gone';
        return this.settings.life === 'known' && !exists(pid) ? 'gone' : 'unknown';
      },
    };
  }
}

function directoryOf(id: string): string {
  return `/${id}`;
}

function drawDisks(random: Prng): DiskSettings {
  return {
    store: random.chance(0.5) ? 'files' : 'database',
    segmentBytes: random.pick([400, 2_000, 20_000]),
    snapshotEvery: random.pick([3, 10, 1_000_000]),
    keepSnapshots: random.integer(1, 2),
    deleteEvents: random.chance(0.5),
    life: random.pick(['known', 'unknown', 'mistaken']),
  };
}
