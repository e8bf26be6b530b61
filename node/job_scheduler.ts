/**
 * The ready-made singleton: one scheduler in the whole cluster that calls URLs when their jobs are due. Its table moves
 * with it in planned moves (warm hand-over) and dies with its host in a crash.
 */
import { SupervisorStrategy } from '../src/actor/supervision.ts';
import { limits } from '../src/limits.ts';
import { SingletonKey } from '../src/singleton/key.ts';
import { StartSingletonOptions } from '../src/singleton/start_options.ts';
import { WarmHandOverActor } from '../src/singleton/warm_hand_over.ts';
import type { CallingWorld } from './job_call.ts';
import type { JobCommand } from './job_messages.ts';
import { JobRunner } from './job_runner.ts';

/** A message that only the scheduler can send itself: it has no form on the wire. */
class Wake {}
const wake = new Wake();

const timerKey = 'wake';

export class JobScheduler extends WarmHandOverActor<JobCommand> {
  static readonly singleton: SingletonKey<JobCommand> = SingletonKey.of('job-scheduler');

  readonly #runner: JobRunner;
  #stopping = false;

  /** @param host address of this node, as targets see it; `fetch` is the global one unless given */
  constructor(host: string, fetch: CallingWorld['fetch'] = (url, init) => globalThis.fetch(url, init)) {
    super();
    const { clock, timers } = this.context.system.environment;
    this.#runner = new JobRunner({
      world: { clock, timers, fetch },
      host,
      epoch: () => this.context.epoch,
      wake: () => this.#wakeIn(0),
    });
  }

  override preStart(): void {
    this.log.info('the job scheduler starts', { epoch: this.context.epoch, jobs: this.#runner.jobs });
    this.#run();
  }

  override onReceive(message: JobCommand): void {
    if (!((message as unknown) instanceof Wake)) this.context.sender.tell(this.#runner.handle(message));
    this.#run();
  }

  override async postStop(): Promise<void> {
    this.#stopping = true;
    await this.#runner.stop();
    this.log.info('the job scheduler has stopped', { epoch: this.context.epoch, jobs: this.#runner.jobs });
  }

  serializeForHandOver(): Uint8Array | null {
    return this.#runner.state();
  }

  restoreFromHandOver(state: Uint8Array): void {
    this.#runner.restore(state);
  }

  #run(): void {
    const delayMs = this.#runner.run();
    if (delayMs !== undefined) this.#wakeIn(delayMs);
  }

  #wakeIn(delayMs: number): void {
    if (this.#stopping) return;
    this.context.timers.startSingle(timerKey, wake as unknown as JobCommand, delayMs);
  }
}

/** How a node starts its scheduler. */
export function jobSchedulerOptions(): StartSingletonOptions<JobCommand> {
  return StartSingletonOptions.create<JobCommand>()
    .withMaxHandOverStateBytes(limits.jobTableBytes)
    // A failure must not cost the table, which a restarted instance would not have.
    .withActorOptions({ supervisor: SupervisorStrategy.oneForOne({ decider: () => 'resume' }) });
}
