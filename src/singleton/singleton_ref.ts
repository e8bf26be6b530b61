/** What users hold: an ordinary ref that reaches the singleton wherever it is hosted. */
import type { Asks } from '../actor/ask.ts';
import type { Logger } from '../actor/environment.ts';
import { ActorRef, admitSender } from '../actor/ref.ts';
import type { Sender } from './in_flight.ts';

export interface SingletonRefPort {
  readonly asks: Asks;
  readonly log: Logger;
  tell(message: unknown, sender: Sender): void;
  /** Why a question may have had no reply, in a sentence. */
  problem(): string;
}

export class SingletonRef<T = unknown> extends ActorRef<T> {
  readonly path: string;
  readonly incarnation = 0;
  readonly typeName: string;
  readonly #port: SingletonRefPort;
  /** One for all questions. */
  readonly #problem = (): string => this.#port.problem();

  constructor(typeName: string, port: SingletonRefPort) {
    super();
    this.typeName = typeName;
    this.path = `/system/cluster/singleton/proxy-${typeName}`;
    this.#port = port;
  }

  tell(message: T, sender?: ActorRef<any>): void {
    this.#port.tell(message, admitSender(sender));
  }

  ask<R = unknown>(message: T, timeoutMs?: number): Promise<R> {
    return this.#port.asks.ask<R>(this, message, timeoutMs, this.#problem);
  }

  /** Does nothing but warn: no caller can stop what another node hosts. Use `cluster.singleton.stop(key)`. */
  stop(): void {
    this.#port.log.warn(
      `a ref cannot stop the singleton ${this.typeName}; use cluster.singleton.stop(key) on the nodes that started it`,
    );
  }

  /** Like `stop`: only warns. */
  kill(): void {
    this.stop();
  }
}
