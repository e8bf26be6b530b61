/** What users write: an actor. After Hewitt's actors, in the shape Erlang and Akka gave them. */
import type { ClusterHandle } from '../cluster/cluster_handle.ts';
import type { ActorContext } from './context.ts';
import type { Logger } from './environment.ts';
import { ActorUsageError, NoClusterError } from './errors.ts';
import type { SupervisorStrategy } from './supervision.ts';
import type { Terminated } from './watch.ts';

/** The context of the actor that is being constructed at this moment. */
let constructing: ActorContext<any> | undefined;

/** Gives an actor its context; false when it belongs to another one already. Set by the class, whose field is private. */
let bindContext: (actor: Actor<any>, context: ActorContext<any>) => boolean;

/**
 * An actor that takes messages of type `T`. It handles one message at a time, in the order of arrival; a handler may be
 * async, and the next message waits until its promise has settled. Whatever it throws goes to supervision.
 *
 * Order of the hooks: constructor, `preStart`, messages, `postStop`. On a restart: children are stopped, `preRestart` on
 * the old instance, then constructor and `postRestart` of the new one. Timers, watches, behaviours and the receive timeout
 * belong to the instance and end with it; mailbox and stash are kept.
 */
export abstract class Actor<T = unknown> {
  #context: ActorContext<T> | undefined = constructing;

  abstract onReceive(message: T): void | Promise<void>;

  /** Before the first message. A throw or rejection is a failure like any other. */
  preStart(): void | Promise<void> {}

  /**
   * After the last message, when all children are gone. A throw is logged and changes nothing. It runs for every instance that
   * was constructed, also when its `preStart` failed: what that had opened before it threw is closed here.
   */
  postStop(): void | Promise<void> {}

  /** On the instance that failed, before it is replaced. `message` is what it failed on, if any. Default: `postStop`. */
  preRestart(_error: unknown, _message: T | undefined): void | Promise<void> {
    return this.postStop();
  }

  /** On the new instance, in place of `preStart`. Default: `preStart`. */
  postRestart(_error: unknown): void | Promise<void> {
    return this.preStart();
  }

  /**
   * An actor that this one watches has ended (`context.watch` without a message of its own). Comes once per watch, in the
   * order of the mailbox, after everything the other one had sent before it ended.
   */
  onTerminated(_notice: Terminated): void | Promise<void> {}

  /** How failures of children are answered, unless their spawn options say otherwise. Default: the system's strategy. */
  supervisor(): SupervisorStrategy | undefined {
    return undefined;
  }

  /** What the actor can do. Available from the constructor on. */
  get context(): ActorContext<T> {
    if (this.#context === undefined) {
      throw new ActorUsageError(`${this.constructor.name} has no context: actors are created by spawn, not by new`);
    }
    return this.#context;
  }

  /** The system's log, with this actor's path before each message. */
  get log(): Logger {
    return this.context.log;
  }

  /** The cluster this system is part of. Throws `NoClusterError` when there is none. */
  get cluster(): ClusterHandle {
    const { system } = this.context;
    const cluster = system.extensions.get('cluster');
    if (cluster === undefined) throw new NoClusterError(system.name);
    return cluster as ClusterHandle;
  }

  static {
    bindContext = (actor, context) => {
      if (actor.#context === undefined) actor.#context = context;
      return actor.#context === context;
    };
  }
}

/** A class of actors without constructor arguments. */
export type ActorClass<T> = new () => Actor<T>;
/** Gives a new actor on each call, since a restart makes a new instance. */
export type ActorFactory<T> = () => Actor<T>;
/** What `spawn` takes: a class that needs no arguments, or a function that makes a new actor on each call. */
export type ActorOrFactory<T> = ActorClass<T> | ActorFactory<T>;

/** Makes an instance that has `context` from its constructor on. */
export function construct<T>(source: ActorOrFactory<T>, context: ActorContext<T>): Actor<T> {
  const outer = constructing;
  constructing = context;
  try {
    const actor = isActorClass(source) ? new source() : source();
    if (!(actor instanceof Actor)) {
      throw new ActorUsageError(`the factory of ${context.self.path} did not return an Actor`);
    }
    if (!bindContext(actor, context)) {
      throw new ActorUsageError(`the factory of ${context.self.path} must return a new actor on each call`);
    }
    return actor;
  } finally {
    constructing = outer;
  }
}

/** Whether `source` is a class of actors, and not a function that makes one. */
export function isActorClass<T>(source: ActorOrFactory<T>): source is ActorClass<T> {
  return typeof source === 'function' && source.prototype instanceof Actor;
}
