/** The persistent singletons of the simulator's load: what they are told becomes events, and the state is all of them. */
import { PersistentActor } from '../persistence/persistent_actor.ts';
import { everyNEvents, type SnapshotPolicy } from '../persistence/snapshot_policy.ts';
import type { Journal } from '../persistence/journal.ts';
import type { PersistenceStores } from '../persistence/stores.ts';
import type { Claim } from '../persistence/writer.ts';
import type { DiskLoad, OpenedStores } from './disk_load.ts';
import type { Instance } from './instance_registry.ts';
import type { Tick, WorkAnswer, WorkerKind, WorkerPlace, WorkMessage } from './workload_actors.ts';

export const persistentKinds: readonly WorkerKind[] = [
  { name: 'events', persistent: true },
  { name: 'slow-events', persistent: true, slowHandlerMs: 60 },
  { name: 'repeated-events', persistent: true, atLeastOnce: true },
];

export class PersistentWorker extends PersistentActor<WorkMessage | Tick, string, readonly string[]> {
  readonly persistenceId: string;
  readonly #kind: WorkerKind;
  readonly #place: WorkerPlace;
  readonly #disks: DiskLoad;
  /** Set by `preStart`: one that is made and never started has no life. */
  #born: Instance | undefined;
  #opened: OpenedStores | undefined;
  #claimEpoch = 0;

  constructor(kind: WorkerKind, place: WorkerPlace, disks: DiskLoad) {
    super();
    this.persistenceId = kind.name;
    this.#kind = kind;
    this.#place = place;
    this.#disks = disks;
  }

  override initialState(): readonly string[] {
    return [];
  }

  override onEvent(state: readonly string[], event: string): readonly string[] {
    return [...state, event];
  }

  override snapshotPolicy(): SnapshotPolicy {
    const { snapshotEvery, keepSnapshots, deleteEvents } = this.#disks.settings;
    return everyNEvents(snapshotEvery, { keepSnapshots, deleteEvents });
  }

  override stores(): PersistenceStores {
    const opened = this.#opened as OpenedStores;
    return { ...opened, journal: noting(opened.journal, ({ writer }) => this.#claimEpoch = writer.epoch) };
  }

  override async preStart(): Promise<void> {
    const { registry, clusterId, seenEpoch, process } = this.#place;
    this.#born = registry.born(this.#kind.name, process);
    registry.epoch(this.#instance, this.context.epoch, clusterId(), seenEpoch(this.#kind.name));
    try {
      this.#opened = await this.#disks.open(process, this.persistenceId);
      this.context.fence();
      await super.preStart();
    } catch (error) {
      this.#disks.judge(this.persistenceId, error);
      await this.#close();
      throw error;
    }
  }

  override onRecoveryCompleted(state: readonly string[]): void {
    this.#disks.book.recovered(this.persistenceId, this.#instance, [this.#claimEpoch, this.#instance.order], state);
  }

  override async onCommand(_state: readonly string[], message: WorkMessage | Tick): Promise<void> {
    if ('tick' in message) return;
    const { registry, ledger, process, quiet, random } = this.#place;
    const settled = registry.handling(this.#instance);
    try {
      ledger.handled(message);
      const { slowHandlerMs } = this.#kind;
      if (slowHandlerMs !== undefined && !quiet()) {
        const ms = random.between(0, slowHandlerMs);
        await process.track(new Promise<void>((resolve) => void process.timers.set(ms, resolve)));
      }
      await this.#write(message);
    } finally {
      ledger.processed(message);
      settled();
    }
  }

  override async postStop(): Promise<void> {
    await super.postStop();
    await this.#close();
  }

  #write(message: WorkMessage): Promise<void> {
    const { book } = this.#disks;
    const id = this.persistenceId;
    // Told apart even where a message is handled twice.
    const name = `${message.stream} ${message.seq} ${this.#instance.order}`;
    const events = message.seq % 7 === 0 ? [`${name} a`, `${name} b`, `${name} c`] : [name];
    book.wanted(id, events);
    return this.persistAll(events, () => {
      book.acknowledged(id, this.#instance, this.lastSequenceNr, events);
      const answer: WorkAnswer = { seq: message.seq, epoch: this.context.epoch };
      if (message.ask) this.context.sender.tell(answer);
    });
  }

  async #close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    try {
      await opened?.close();
    } finally {
      if (this.#born !== undefined) this.#place.registry.terminated(this.#born);
    }
  }

  get #instance(): Instance {
    return this.#born as Instance;
  }
}

/** The same journal, where `claimed` is told of each claim. */
function noting(journal: Journal, claimed: (claim: Claim) => void): Journal {
  return {
    claim: async (id, writer) => {
      const claim = await journal.claim(id, writer);
      claimed(claim);
      return claim;
    },
    append: (id, events, expectedSeq, writer) => journal.append(id, events, expectedSeq, writer),
    read: (id, fromSeq, toSeq) => journal.read(id, fromSeq, toSeq),
    readByTag: (tag, after) => journal.readByTag(tag, after),
    highestSeq: (id) => journal.highestSeq(id),
    delete: (id, toSeq) => journal.delete(id, toSeq),
    close: () => journal.close(),
  };
}
