/** A node that a caller is connected to and that gets nothing done, such as one that is cut off from the others, is left. */
import type { Cancel, Environment } from '../actor/environment.ts';
import { coreLimits as limits } from '../limits.ts';
import type { CallerStream } from './caller_stream.ts';

export interface StallPort {
  readonly environment: Environment;
  streams(): Iterable<CallerStream>;
  /** Some process is to host this singleton, as the node says. */
  hosted(name: string): boolean;
  giveUp(why: string): void;
}

const lookMs = 1_000;

export class StallWatch {
  readonly #port: StallPort;
  #looking: Cancel | undefined;
  #progress = 0;
  #since = 0;

  constructor(port: StallPort) {
    this.#port = port;
  }

  begin(): void {
    this.#since = this.#port.environment.clock.now();
    this.#arm();
  }

  end(): void {
    this.#looking?.();
    this.#looking = undefined;
  }

  #arm(): void {
    this.#looking?.();
    this.#looking = this.#port.environment.timers.set(lookMs, () => this.#look());
  }

  #look(): void {
    const { environment, streams, hosted, giveUp } = this.#port;
    const now = environment.clock.now();
    const all = [...streams()];
    const waiting = all.find(({ name, proxy }) => proxy.stream.buffered > 0 && hosted(name));
    const progress = all.reduce((sum, stream) => sum + stream.progress, 0);
    if (waiting === undefined || progress !== this.#progress) this.#since = now;
    this.#progress = progress;
    if (waiting === undefined || now - this.#since <= limits.callerStallMs) return this.#arm();
    giveUp(`nothing was heard of ${waiting.name} for ${limits.callerStallMs} ms`);
  }
}
