/** What happens in a system, for those who listen: dead letters, failures of actors, and whatever else is published. */
import type { Cancel, Logger } from './environment.ts';
import type { Directive } from './supervision.ts';

/** A class whose instances are events. */
export type EventClass<E> = abstract new (...args: any[]) => E;

interface Subscription {
  readonly wants: (event: unknown) => boolean;
  readonly listener: (event: never) => void;
}

/**
 * What a system tells whoever listens in the same process, such as dead letters. Listeners are called synchronously;
 * what one throws is logged.
 */
export class EventStream {
  readonly #log: Logger;
  /** Replaced on change, so that a listener may subscribe and cancel while an event is being handed out. */
  #subscriptions: readonly Subscription[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Calls `listener` for each event that is an instance of `type`, or for which the predicate answers true. */
  subscribe<E>(type: EventClass<E>, listener: (event: E) => void): Cancel;
  subscribe<E>(predicate: (event: unknown) => event is E, listener: (event: E) => void): Cancel;
  subscribe(predicate: (event: unknown) => boolean, listener: (event: unknown) => void): Cancel;
  subscribe<E>(
    selector: EventClass<E> | ((event: unknown) => boolean),
    listener: (event: E) => void,
  ): Cancel {
    const wants = isClass(selector) ? (event: unknown) => event instanceof selector : selector;
    const subscription: Subscription = { wants: wants as (event: unknown) => boolean, listener };
    this.#subscriptions = [...this.#subscriptions, subscription];
    return () => {
      this.#subscriptions = this.#subscriptions.filter((one) => one !== subscription);
    };
  }

  /** Hands `event` to its listeners, one after the other, before returning. One that throws is logged. */
  publish(event: unknown): void {
    for (const { wants, listener } of this.#subscriptions) {
      try {
        if (wants(event)) listener(event as never);
      } catch (error) {
        this.#log.error('a listener of the event stream threw', { error });
      }
    }
  }
}

/** The `prototype` of a class cannot be replaced, that of a plain function can, and an arrow function has none. */
function isClass(value: object): value is EventClass<unknown> {
  return Object.getOwnPropertyDescriptor(value, 'prototype')?.writable === false;
}

/** An actor has failed, and this is what supervision made of it. */
export class ActorFailed {
  readonly path: string;
  readonly error: unknown;
  /** The kind of the message it failed on; undefined when it failed while starting or with a child. */
  readonly messageKind: string | undefined;
  readonly directive: Directive;

  constructor(path: string, error: unknown, messageKind: string | undefined, directive: Directive) {
    this.path = path;
    this.error = error;
    this.messageKind = messageKind;
    this.directive = directive;
  }
}
