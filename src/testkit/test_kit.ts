/** An actor system on a clock that the test moves, with probes. */
import type { ActorSystemOptions } from '../actor/system.ts';
import { ActorSystem } from '../actor/system.ts';
import { ManualEnvironment } from './manual_environment.ts';
import { TestProbe } from './test_probe.ts';

/**
 * ```ts
 * const kit = new TestKit();
 * const probe = kit.probe<string>();
 * kit.system.spawn(Greeter, 'greeter').tell({ replyTo: probe.ref });
 * await probe.expectMessage('hello');
 * await kit.shutdown();
 * ```
 */
export class TestKit {
  readonly environment: ManualEnvironment;
  readonly system: ActorSystem;
  #probes = 0;

  /** `options.environment` is given by the kit. */
  constructor(name = 'test', options: Omit<ActorSystemOptions, 'environment'> = {}) {
    this.environment = new ManualEnvironment();
    this.system = ActorSystem.create(name, { logger: this.environment.log, ...options, environment: this.environment });
  }

  /** A new probe, under a generated name unless one is given. */
  probe<T = unknown>(name?: string): TestProbe<T> {
    this.#probes++;
    return new TestProbe<T>(this.system, name ?? `probe-${this.#probes}`, (ms) => this.elapse(ms));
  }

  /** Lets virtual time pass, with timers, turns and promises. */
  elapse(ms: number): Promise<void> {
    return this.environment.elapse(ms);
  }

  /** Lets everything happen that needs no time. */
  settle(): Promise<void> {
    return this.environment.settle();
  }

  /** Terminates the system; virtual time passes until it has ended. */
  async shutdown(): Promise<void> {
    let ended = false;
    const terminated = this.system.terminate().then(() => void (ended = true));
    while (!ended) await this.elapse(100);
    await terminated;
  }
}
