/** Refs: how actors are addressed. */
import { FencedError } from './errors.ts';

/**
 * The address of an actor of type `T`, local, remote or a singleton's. Holding one never keeps an actor alive. Two refs
 * are equal when path and incarnation are: a later actor under the same name is another one.
 */
export abstract class ActorRef<T = unknown> {
  /** Makes refs differ by what they take: an `ActorRef<A | B>` is an `ActorRef<A>`, and not the other way round. */
  declare protected readonly takes?: (message: T) => void;

  /**
   * For layers that build refs: set on a ref whose owner may lose the right to act. Once it is true, messages sent in
   * that owner's name are refused with `FencedError`.
   */
  fence: (() => boolean) | undefined = undefined;

  /** `/user/a/b`; exact, with no other spelling. */
  abstract readonly path: string;
  /** Distinguishes actors that had the same path one after the other. 0 means "whoever is there". */
  abstract readonly incarnation: number;

  /**
   * Sends `message`. Returns at once and never fails for the receiver's sake: what cannot be delivered becomes a dead
   * letter. `sender` is what the receiver sees as `context.sender`.
   */
  abstract tell(message: T, sender?: ActorRef<any>): void;

  /**
   * Sends `message` and waits for the first reply to `context.sender`. `timeoutMs` defaults to 5000. Rejects with
   * `AskTimeoutError`, with `UndeliveredError` as soon as the message has become a dead letter, or with
   * `TooManyAsksError`.
   */
  abstract ask<R = unknown>(message: T, timeoutMs?: number): Promise<R>;

  /** Stops the actor after the message it is handling; queued messages become dead letters. */
  abstract stop(): void;

  /** The ref that is really meant, where this one only guards another. */
  underlying(): ActorRef<any> {
    return this;
  }

  equals(other: ActorRef<any>): boolean {
    return this.path === other.path && this.incarnation === other.incarnation;
  }

  toString(): string {
    return `${this.path}#${this.incarnation}`;
  }
}

/** The fence of the actor whose handler is running at this moment, if it has one. Written by cells only. */
export const running: { fence: (() => boolean) | undefined; path: string } = { fence: undefined, path: '' };

/**
 * What every `tell` does first: refuses with `FencedError` if the running actor or the one it sends for has been fenced,
 * and gives the sender as the receiver should see it.
 */
export function admitSender(sender: ActorRef<any> | undefined): ActorRef<any> | undefined {
  if (running.fence !== undefined && running.fence()) throw fencedError(running.path, 'send messages');
  if (sender === undefined || sender.fence === undefined) return sender;
  if (sender.fence()) throw fencedError(sender.path, 'send messages');
  return sender.underlying();
}

export function fencedError(path: string, operation: string): FencedError {
  return new FencedError(`${path} may not ${operation} any more: it was killed, or it lost its lease or its node`);
}

/** A sender as seen by a handler that may be fenced while it runs: replies through it are then refused. */
export class FencedRef extends ActorRef<unknown> {
  private readonly target: ActorRef<any>;
  private readonly owner: string;

  constructor(target: ActorRef<any>, owner: string, fence: () => boolean) {
    super();
    this.target = target;
    this.owner = owner;
    this.fence = fence;
  }

  get path(): string {
    return this.target.path;
  }

  get incarnation(): number {
    return this.target.incarnation;
  }

  tell(message: unknown, sender?: ActorRef<any>): void {
    this.check('reply');
    this.target.tell(message, sender);
  }

  ask<R = unknown>(message: unknown, timeoutMs?: number): Promise<R> {
    this.check('ask');
    return this.target.ask<R>(message, timeoutMs);
  }

  stop(): void {
    this.check('stop others');
    this.target.stop();
  }

  override underlying(): ActorRef<any> {
    return this.target;
  }

  private check(operation: string): void {
    if (this.fence?.()) throw fencedError(this.owner, operation);
  }
}
