/** A bank account as a persistent actor, on stores that a test can look into and make fail. */
import { ActorSystem, type ActorSystemOptions } from '../../src/mod.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import {
  type Journal,
  MemoryJournal,
  MemorySnapshotStore,
  neverSnapshot,
  PersistentActor,
  type SnapshotPolicy,
  type SnapshotStore,
  usePersistence,
} from '../../src/persistence/mod.ts';

export type Command =
  | { readonly kind: 'add'; readonly amounts: readonly number[] }
  | { readonly kind: 'get' }
  | { readonly kind: 'run'; readonly run: (actor: Account) => void | Promise<void> };
export interface Added {
  readonly amount: number;
}
export interface Balance {
  readonly total: number;
  readonly count: number;
}

export class Account extends PersistentActor<Command, Added, Balance> {
  readonly persistenceId: string = 'account';
  policy: SnapshotPolicy = neverSnapshot;

  override initialState(): Balance {
    return { total: 0, count: 0 };
  }

  override onEvent(state: Balance, event: Added): Balance {
    return { total: state.total + event.amount, count: state.count + 1 };
  }

  override onCommand(state: Balance, command: Command): void | Promise<void> {
    const { sender } = this.context;
    if (command.kind === 'get') return sender.tell(state);
    if (command.kind === 'run') return command.run(this);
    this.persistAll(command.amounts.map((amount) => ({ amount })), (next) => sender.tell(next));
  }

  override snapshotPolicy(): SnapshotPolicy {
    return this.policy;
  }
}

export class World {
  readonly env = new ManualEnvironment();
  readonly system: ActorSystem;
  readonly journal: Journal;
  readonly snapshots: SnapshotStore;

  constructor(
    stores: { readonly journal?: Journal; readonly snapshots?: SnapshotStore } = {},
    options: ActorSystemOptions = {},
  ) {
    this.journal = stores.journal ?? new MemoryJournal();
    this.snapshots = stores.snapshots ?? new MemorySnapshotStore();
    this.system = ActorSystem.create('bank', { environment: this.env, ...options });
    usePersistence(this.system, { journal: this.journal, snapshots: this.snapshots });
  }

  /** The same stores, as after a restart of the process. */
  restarted(options: ActorSystemOptions = {}): World {
    return new World({ journal: this.journal, snapshots: this.snapshots }, options);
  }

  /** Lets everything go on until `promise` has settled. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let done = false;
    promise.then(() => done = true, () => done = true);
    for (let round = 0; !done; round += 1) {
      if (round > 100_000) throw new Error('it does not settle');
      await this.env.settle();
    }
    return promise;
  }

  spawn(name = 'account', source: () => Account = () => new Account()) {
    const ref = this.system.spawn<Command>(source, name);
    return {
      ref,
      add: (...amounts: number[]) => this.settled(ref.ask<Balance>({ kind: 'add', amounts })),
      get: () => this.settled(ref.ask<Balance>({ kind: 'get' })),
      /** Runs in the actor, as a command of its own. */
      run: async <T>(run: (actor: Account) => T | Promise<T>): Promise<T> => {
        let result: { value: T } | undefined;
        let failure: { error: unknown } | undefined;
        ref.tell({
          kind: 'run',
          run: async (actor) => {
            try {
              result = { value: await run(actor) };
            } catch (error) {
              failure = { error };
            }
          },
        });
        for (let round = 0; result === undefined && failure === undefined; round += 1) {
          if (round > 100_000) throw new Error('the command was not handled');
          await this.env.settle();
        }
        if (failure !== undefined) throw failure.error;
        return (result as { value: T }).value;
      },
    };
  }
}

/** Passes everything on, until a test puts something in the way. */
export class FaultyJournal extends MemoryJournal {
  appends = 0;
  beforeAppend: (() => void | Promise<void>) | undefined;
  afterAppend: (() => void | Promise<void>) | undefined;

  override async append(...args: Parameters<MemoryJournal['append']>): ReturnType<MemoryJournal['append']> {
    this.appends += 1;
    await this.beforeAppend?.();
    const stored = await super.append(...args);
    await this.afterAppend?.();
    return stored;
  }
}
