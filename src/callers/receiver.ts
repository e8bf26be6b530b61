/** A receiver of a caller: what singletons send to it comes to a function. */
import { ActorRef, admitSender } from '../actor/ref.ts';
import { CallerAskError } from './caller_ref.ts';

export interface ReceiverOwner {
  remove(receiver: Receiver<any>): void;
  failed(receiver: Receiver<any>, error: unknown): void;
}

/**
 * Give it as sender of a `tell`, or in a message, and a singleton can send to it for as long as this caller lives, over
 * reconnects too. At most once: what is sent while the caller is not connected is lost.
 */
export class Receiver<T = unknown> extends ActorRef<T> {
  readonly path: string;
  readonly incarnation = 0;
  /** Among the receivers of its caller. */
  readonly id: string;
  readonly #owner: ReceiverOwner;
  #receive: ((message: T) => void) | undefined;

  constructor(id: string, receive: (message: T) => void, owner: ReceiverOwner) {
    super();
    this.id = id;
    this.path = `/receivers/${id}`;
    this.#receive = receive;
    this.#owner = owner;
  }

  tell(message: T, sender?: ActorRef<any>): void {
    admitSender(sender);
    try {
      this.#receive?.(message);
    } catch (error) {
      this.#owner.failed(this, error);
    }
  }

  ask<R = unknown>(): Promise<R> {
    return Promise.reject(new CallerAskError('a receiver cannot be asked'));
  }

  /** Nothing is received any more. */
  stop(): void {
    this.#receive = undefined;
    this.#owner.remove(this);
  }
}

/** A ref that came in a message and reaches nobody from here. */
export class NowhereRef extends ActorRef<unknown> {
  readonly path = '/nowhere';
  readonly incarnation = 0;
  readonly #lose: (message: unknown, sender: ActorRef<any> | undefined) => void;

  constructor(lose: (message: unknown, sender: ActorRef<any> | undefined) => void) {
    super();
    this.#lose = lose;
  }

  tell(message: unknown, sender?: ActorRef<any>): void {
    this.#lose(message, admitSender(sender));
  }

  ask<R = unknown>(): Promise<R> {
    return Promise.reject(new CallerAskError('a caller reaches singletons and nothing else'));
  }

  stop(): void {}
}
