/**
 * The job scheduler that keeps its table in a journal. A change is durable before it is answered, and the beginning of a run
 * before its target is called. A run whose end is not on record when its host crashes is made again under its number.
 */
import type { LocalActorRef } from '../src/actor/local_ref.ts';
import { limits } from '../src/limits.ts';
import { mustStop } from '../src/persistence/errors.ts';
import { writerFor } from '../src/persistence/stores.ts';
import type { SingletonKey } from '../src/singleton/key.ts';
import { WarmHandOverActor } from '../src/singleton/warm_hand_over.ts';
import type { JobCall } from './job.ts';
import type { CallingWorld } from './job_call.ts';
import { JobJournal, type JobStores } from './job_journal.ts';
import type { JobCommand, JobReply } from './job_messages.ts';
import { JobRunner } from './job_runner.ts';
import { JobScheduler } from './job_scheduler.ts';
import { JobTable } from './job_table.ts';

/** A message that only the scheduler can send itself: it has no form on the wire. */
class Turn {}
const turn = new Turn();

const timerKey = 'turn';
const firstRetryMs = 100;
/** A store that goes on failing is said again this often. */
const sayAgainMs = 600_000;

export interface DurableJobSchedulerOptions {
  /** Address of this node, as targets see it. */
  readonly host: string;
  /** Names the table among those in the same stores. */
  readonly persistenceId: string;
  /** Opens the stores for as long as this node hosts; called again after a failure. */
  readonly open: () => Promise<JobStores>;
  /** Default: the global one. */
  readonly fetch?: CallingWorld['fetch'];
}

export class DurableJobScheduler extends WarmHandOverActor<JobCommand> {
  static readonly singleton: SingletonKey<JobCommand> = JobScheduler.singleton;

  readonly #runner: JobRunner;
  readonly #journal: JobJournal;
  /** The table of a predecessor that had no journal, or could not use it. */
  #warm: Uint8Array | undefined;
  /** Runs that have begun in the table and are not called before that is durable. */
  #begun: JobCall[] = [];
  /** Why the store does not work; undefined while it does. */
  #trouble: string | undefined = 'the jobs are not loaded yet';
  #failures = 0;
  #saidAt = -Infinity;
  #stopping = false;

  constructor({ host, persistenceId, open, fetch }: DurableJobSchedulerOptions) {
    super();
    const { context } = this;
    const { system } = context;
    const { environment } = system;
    const table = new JobTable((id, what) => this.#journal.changed(id, what));
    this.#journal = new JobJournal({
      persistenceId,
      table,
      open,
      writer: () => writerFor(system, context.fence()),
      environment,
      log: this.log,
    });
    this.#runner = new JobRunner({
      world: {
        clock: environment.clock,
        timers: environment.timers,
        fetch: fetch ?? ((url, init) => globalThis.fetch(url, init)),
      },
      host,
      epoch: () => context.epoch,
      wake: () => {
        // While the store fails, the next attempt counts what has ended.
        if (this.#trouble === undefined) this.#turnIn(0);
      },
      table,
    });
    // Also after a kill, when postStop does not run: the next host must be able to open the stores.
    (context.self.underlying() as LocalActorRef<JobCommand>).onTermination(() => void this.#journal.close());
  }

  override async preStart(): Promise<void> {
    await this.#turn();
  }

  override async onReceive(message: JobCommand): Promise<void> {
    if ((message as unknown) instanceof Turn) return this.#turn();
    const { sender } = this.context;
    const kind = (message as { kind?: unknown } | null | undefined)?.kind;
    const changes = kind === 'put' || kind === 'delete';
    let reply: JobReply | undefined;
    if (this.#trouble === undefined || (this.#journal.recovered && !changes)) {
      reply = this.#runner.handle(message);
      if (changes) await this.#turn();
    }
    const kept = reply !== undefined && (!changes || this.#trouble === undefined);
    sender.tell(kept ? reply : { kind: 'unavailable', why: this.#trouble } as JobReply);
  }

  override async postStop(): Promise<void> {
    this.#stopping = true;
    await this.#runner.stop();
    try {
      if (this.#journal.recovered && !this.#journal.setBack) await this.#journal.write();
    } catch (error) {
      // Else it has been said what is lost, and nobody knows which runs are made again.
      if (!this.#journal.setBack) {
        this.log.error(`the last runs were not recorded, and are made again: ${oneLine(error)}`);
      }
    }
    await this.#journal.close();
    this.log.info('the job scheduler has stopped', { epoch: this.context.epoch, jobs: this.#runner.jobs });
  }

  /** For a successor whose journal is empty. */
  serializeForHandOver(): Uint8Array | null {
    return this.#journal.recovered ? this.#runner.state() : this.#warm ?? null;
  }

  restoreFromHandOver(state: Uint8Array): void {
    this.#warm = state;
  }

  /** Decides, makes durable what that changes, and only then calls. */
  async #turn(): Promise<void> {
    try {
      if (!this.#journal.recovered) await this.#recover();
      this.#begun.push(...this.#runner.due());
      await this.#journal.write();
    } catch (error) {
      return this.#failed(error);
    }
    if (this.#failures > 0) this.log.warn('the jobs can be stored again', { jobs: this.#runner.jobs });
    this.#trouble = undefined;
    this.#failures = 0;
    this.#runner.start(this.#begun);
    this.#begun = [];
    const delayMs = this.#runner.sleepMs();
    if (delayMs !== undefined) this.#turnIn(delayMs);
  }

  async #recover(): Promise<void> {
    const found = await this.#journal.recover();
    const warm = this.#warm;
    this.#warm = undefined;
    if (!found && warm !== undefined) {
      this.#runner.restore(warm);
      this.#journal.changedAll();
    }
    this.log.info('the job scheduler starts', { epoch: this.context.epoch, jobs: this.#runner.jobs });
  }

  #failed(error: unknown): void {
    this.#trouble = oneLine(error);
    if (mustStop(error)) {
      this.log.error(`the job scheduler stops here: ${this.#trouble}`);
      return this.context.stopSelf();
    }
    const delayMs = Math.min(firstRetryMs * 2 ** Math.min(this.#failures, 16), limits.jobStoreRetryMs);
    const now = this.context.system.environment.clock.now();
    if (this.#failures++ === 0 || now - this.#saidAt >= sayAgainMs) {
      this.#saidAt = now;
      const often = `tried again, every ${limits.jobStoreRetryMs / 1_000} s at last`;
      this.log.error(`the jobs cannot be stored: ${this.#trouble}; ${often}`, { failures: this.#failures });
    }
    this.#turnIn(delayMs);
  }

  #turnIn(delayMs: number): void {
    if (this.#stopping) return;
    this.context.timers.startSingle(timerKey, turn as unknown as JobCommand, delayMs);
  }
}

function oneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, ' ');
}
