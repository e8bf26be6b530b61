/**
 * A store outside of every node, shared by all and fenced by claims: the real file journal on a simulated disk of its own,
 * reached over a network that may be late, lose an answer, or not know. It loses power and comes back.
 */
import { StorageError } from '../persistence/errors.ts';
import { FileJournal, FileSnapshotStore } from '../persistence/file_journal/mod.ts';
import type { Journal, NewEvent, StoredEvent, TaggedEvent } from '../persistence/journal.ts';
import type { Snapshot, SnapshotDamage, SnapshotStore } from '../persistence/snapshot_store.ts';
import type { PersistenceStores } from '../persistence/stores.ts';
import type { Claim, Writer } from '../persistence/writer.ts';
import { Prng } from './prng.ts';
import { SimDisk } from './sim_disk.ts';
import type { SimProcess } from './sim_process.ts';
import type { World } from './sim_world.ts';

/** `late`: seconds on the way. `lost`: the request or its answer. `unknown`: an error, whether or not it was carried out. */
export type DatabaseFaultKind = 'late' | 'lost' | 'unknown';

export const databaseFaultKinds: readonly DatabaseFaultKind[] = ['late', 'lost', 'unknown'];

interface Server {
  readonly journal: FileJournal;
  readonly snapshots: FileSnapshotStore;
}

const directory = '/database';
const legMs = [0.2, 5] as const;
const lateLegMs = [0, 4_000] as const;
/** After which a client gives up waiting. */
const timeoutMs = 5_000;
const pageEvents = 40;

export class SimDatabase {
  readonly disk: SimDisk;
  readonly #world: World;
  readonly #random: Prng;
  readonly #segmentBytes: number;
  #server: Server | undefined;
  /** Of the server: an older one answers nobody. */
  #incarnation = 0;
  #faults: { readonly kind: DatabaseFaultKind; readonly until: number }[] = [];

  constructor(world: World, segmentBytes: number) {
    this.#world = world;
    this.#random = new Prng(`${world.seed}/database`);
    this.#segmentBytes = segmentBytes;
    this.disk = new SimDisk(world, 'database');
    world.at(0, () => this.#start());
  }

  fault(kind: DatabaseFaultKind, forMs: number): void {
    this.#faults.push({ kind, until: this.#world.now + forMs });
  }

  endFaults(): void {
    this.#faults = [];
    this.disk.endFaults();
  }

  /** The server and its disk lose power, and come back after a while. */
  crash(): void {
    this.#world.record('database', '-', 'loses power');
    this.#server = undefined;
    this.#incarnation++;
    this.disk.losePower();
    this.#startLater(this.#random.between(50, 3_000));
  }

  /** What one process sees of it. */
  client(process: SimProcess): Required<Pick<PersistenceStores, 'journal' | 'snapshots'>> {
    const ask: Ask = (run) => this.#ask(process, run);
    return { journal: new RemoteJournal(ask), snapshots: new RemoteSnapshots(ask) };
  }

  #startLater(ms: number): void {
    const incarnation = this.#incarnation;
    this.#world.at(this.#world.now + ms, () => {
      if (incarnation === this.#incarnation) this.#start();
    });
  }

  #start(): void {
    const incarnation = this.#incarnation;
    const system = this.disk.mount(undefined);
    const onWarning = (message: string) => this.#world.record('database', '-', message);
    const open = async (): Promise<Server> => {
      await system.makeDirectory(directory);
      const journal = await FileJournal.open({
        system,
        directory: `${directory}/journal`,
        segmentBytes: this.#segmentBytes,
        onWarning,
      });
      const snapshots = await FileSnapshotStore.open({ system, directory: `${directory}/snapshots`, onWarning });
      return { journal, snapshots };
    };
    open().then((server) => {
      if (incarnation === this.#incarnation) this.#server = server;
    }, (error) => {
      if (!(error instanceof StorageError)) return this.#world.fail(error);
      this.#startLater(500);
    });
  }

  #ask<T>(process: SimProcess, run: (server: Server) => Promise<T>): Promise<T> {
    const random = this.#random;
    const world = this.#world;
    this.#faults = this.#faults.filter(({ until }) => until > world.now);
    const kind = this.#faults.length === 0 ? undefined : random.pick(this.#faults).kind;
    const [shortest, longest] = kind === 'late' ? lateLegMs : legMs;
    const [there, back] = [random.between(shortest, longest), random.between(shortest, longest)];
    const lost = kind === 'lost' && random.chance(0.7) ? random.pick(['there', 'back']) : undefined;
    const unknown = kind === 'unknown' && random.chance(0.7);
    const carriedOut = lost !== 'there' && !(unknown && random.chance(0.5));
    return process.track(
      new Promise<T>((resolve, reject) => {
        const giveUp = process.timers.set(timeoutMs, () => reject(new StorageError('the database does not answer')));
        const answer = (settle: () => void) => {
          if (lost !== undefined) return;
          world.schedule(world.now + back, process, 'io', () => {
            giveUp();
            if (unknown) reject(new StorageError('the connection broke'));
            else settle();
          });
        };
        world.at(world.now + there, () => {
          const server = this.#server;
          if (server === undefined) return answer(() => reject(new StorageError('the database is down')));
          if (!carriedOut) return answer(() => {});
          const incarnation = this.#incarnation;
          const alive = (settle: () => void) => {
            if (incarnation === this.#incarnation) answer(settle);
            else answer(() => reject(new StorageError('the database went down')));
          };
          run(server).then((value) => alive(() => resolve(value)), (error) => alive(() => reject(error)));
        });
      }),
    );
  }
}

type Ask = <T>(run: (server: Server) => Promise<T>) => Promise<T>;

class RemoteJournal implements Journal {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  claim(id: string, writer: Writer): Promise<Claim> {
    return this.#ask(({ journal }) => journal.claim(id, writer));
  }

  append(
    id: string,
    events: readonly NewEvent[],
    expectedSeq: number,
    writer: Writer,
  ): Promise<readonly StoredEvent[]> {
    return this.#ask(({ journal }) => journal.append(id, events, expectedSeq, writer));
  }

  async *read(id: string, fromSeq = 1, toSeq = Infinity): AsyncGenerator<StoredEvent, void, void> {
    for (let next = fromSeq; next <= toSeq;) {
      const page = await this.#ask(({ journal }) => collect(journal.read(id, next, toSeq), pageEvents));
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < pageEvents) return;
      next = last.sequenceNr + 1;
    }
  }

  async *readByTag(tag: string, after?: string): AsyncGenerator<TaggedEvent, void, void> {
    yield* await this.#ask(({ journal }) => collect(journal.readByTag(tag, after), Infinity));
  }

  highestSeq(id: string): Promise<number> {
    return this.#ask(({ journal }) => journal.highestSeq(id));
  }

  delete(id: string, toSeq: number): Promise<void> {
    return this.#ask(({ journal }) => journal.delete(id, toSeq));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

class RemoteSnapshots implements SnapshotStore {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  save(id: string, snapshot: Snapshot): Promise<void> {
    return this.#ask(({ snapshots }) => snapshots.save(id, snapshot));
  }

  loadLatest(id: string, onDamage?: (damage: SnapshotDamage) => void): Promise<Snapshot | undefined> {
    return this.#ask(({ snapshots }) => snapshots.loadLatest(id, onDamage));
  }

  loadBefore(
    id: string,
    sequenceNr: number,
    onDamage?: (damage: SnapshotDamage) => void,
  ): Promise<Snapshot | undefined> {
    return this.#ask(({ snapshots }) => snapshots.loadBefore(id, sequenceNr, onDamage));
  }

  list(id: string): Promise<readonly number[]> {
    return this.#ask(({ snapshots }) => snapshots.list(id));
  }

  delete(id: string, toSeq: number): Promise<void> {
    return this.#ask(({ snapshots }) => snapshots.delete(id, toSeq));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function collect<T>(items: AsyncIterable<T>, most: number): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) {
    if (collected.push(item) >= most) break;
  }
  return collected;
}
