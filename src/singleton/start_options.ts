/** Options of `cluster.singleton.start`: a builder or a plain object, checked once. */
import { type ActorOrFactory, isActorClass } from '../actor/actor.ts';
import { checkOptions, OptionsError, type Rules, rules } from '../actor/options.ts';
import { checkSpawnOptions, type SpawnOptions } from '../actor/spawn_options.ts';
import { checkLeaseOwner, type Lease, type LeaseFactory } from '../coordination/lease.ts';
import { limits } from '../limits.ts';
import type { Placement } from './host.ts';
import { checkRole, checkTypeName } from './key.ts';
import type { DeliveryMode, OverflowPolicy } from './sender_stream.ts';

export type LocalMessages = 'shared' | 'copied';

/** Options of `cluster.singleton.start` as a plain object; `StartSingletonOptions` builds the same. */
export interface StartSingletonSettings<T = unknown> {
  /** Name of the singleton. Required, unless a class or key says it. */
  readonly typeName?: string;
  /** Class, or a function that makes a new actor on each call. Required, unless given beside. */
  readonly actor?: ActorOrFactory<T>;
  /** Only members with this role host it. Beats the key's. */
  readonly role?: string;
  /** Messages kept on this node while no host can take them. Default 1 000. */
  readonly bufferSize?: number;
  /** And their size together, about. Default 64 MiB. */
  readonly bufferBytes?: number;
  /** What happens at either bound. Default `drop-newest`; `fail-ask` refuses asks and drops the newest of the others. */
  readonly overflow?: OverflowPolicy;
  /**
   * After a crash of the host, messages that were sent and not acknowledged become dead letters (`at-most-once`, default)
   * or are sent again (`at-least-once`).
   */
  readonly delivery?: DeliveryMode;
  /**
   * What the instance gets from senders on its own node: the object that was told (`shared`, default: fast, but a change that
   * either side makes to it is seen by the other), or a `copied` one, exactly as if it had come from another node. What cannot
   * be sent to another node is refused in both cases.
   */
  readonly localMessages?: LocalMessages;
  /**
   * Asked for before each start, held while the instance lives, given back after it has ended; its token is the epoch. A
   * factory, such as `EtcdLease.factory(…)`, gets the name of the singleton and this node as the owner. Every member that
   * starts the singleton must use the same lease. Default: none.
   */
  readonly lease?: LeaseFactory | Lease;
  /** Longest wait until a lease that was not granted is asked for again. Default 5 000 ms. */
  readonly acquireRetryIntervalMs?: number;
  /** How long to wait for silent members before `handOverPolicy` decides. Default: the cluster's, 10 000 ms. */
  readonly handOverTimeoutMs?: number;
  /** `host-anyway` (default): host beside members nobody reaches, with a warning and a count. `wait-for-removal`: never. */
  readonly handOverPolicy?: 'host-anyway' | 'wait-for-removal';
  /** Largest state that travels with a planned move. Default 1 MiB. */
  readonly maxHandOverStateBytes?: number;
  /** Start again after an unexpected end. Default true; false: never again on this node until `stop` and `start`. */
  readonly restartOnTermination?: boolean;
  /** Unexpected ends within a minute after which the singleton moves to another member. Default 5. */
  readonly moveAfterFailures?: number;
  /**
   * Which of the members that may host does. Default `oldest`. `spread`: many singletons share the members; each is put on
   * one of them by rendezvous hashing when it is hosted for the first time or its member has gone, and stays there whoever
   * joins, until an operator moves it or `cluster.singleton.rebalance` puts all of them anew.
   */
  readonly placement?: Placement;
  /** An instance that has not stopped by then is killed. Default 10 000 ms. */
  readonly stopTimeoutMs?: number;
  /** Supervision and stash of the instance; a bounded mailbox is refused, since the senders' credits bound it. */
  readonly actorOptions?: SpawnOptions;
}

export interface ResolvedStart<T = unknown>
  extends Required<Omit<StartSingletonSettings<T>, 'role' | 'handOverTimeoutMs' | 'lease'>> {
  readonly role: string | undefined;
  readonly lease: LeaseFactory | Lease | undefined;
  readonly handOverTimeoutMs: number | undefined;
}

const family = 'StartSingletonOptions';

const leaseRule = {
  rule: 'must be a lease',
  accepts: (value: unknown) =>
    (['acquireWithToken', 'release', 'checkAlive', 'onLost', 'abandon'] as const).every((method) =>
      typeof (value as Partial<Lease> | null | undefined)?.[method] === 'function'
    ),
};

/** @throws OptionsError when a factory has returned something else, or a lease that another process may hold as well */
export function checkMadeLease(lease: Lease, uid: string): Lease {
  if (!leaseRule.accepts(lease)) {
    throw new OptionsError(family, 'lease', lease, 'must be a factory that returns a lease');
  }
  return checkLeaseOwner(family, lease, uid);
}

const settingRules: Rules<StartSingletonSettings<any>> = {
  typeName: rules.text(limits.typeNameChars),
  actor: rules.function,
  role: rules.text(limits.roleChars),
  bufferSize: rules.integer(1, limits.proxyBuffer),
  bufferBytes: rules.integer(1, limits.proxyBufferBytes),
  localMessages: rules.oneOf('shared', 'copied'),
  overflow: rules.oneOf('drop-newest', 'drop-oldest', 'fail-ask'),
  delivery: rules.oneOf('at-most-once', 'at-least-once'),
  lease: rules.either(rules.function, leaseRule),
  acquireRetryIntervalMs: rules.durationMs(10),
  handOverTimeoutMs: rules.durationMs(1),
  handOverPolicy: rules.oneOf('host-anyway', 'wait-for-removal'),
  maxHandOverStateBytes: rules.integer(0, limits.handOverStateBytes),
  restartOnTermination: rules.boolean,
  moveAfterFailures: rules.integer(1, 1_000),
  placement: rules.oneOf('oldest', 'spread'),
  stopTimeoutMs: rules.durationMs(1),
  actorOptions: rules.object,
};

/** Builder over `StartSingletonSettings`: one `with` method a field. */
export class StartSingletonOptions<T = unknown> {
  readonly settings: StartSingletonSettings<T>;

  private constructor(settings: StartSingletonSettings<T>) {
    this.settings = settings;
  }

  static create<T = unknown>(): StartSingletonOptions<T> {
    return new StartSingletonOptions<T>({});
  }

  #with(change: StartSingletonSettings<T>): StartSingletonOptions<T> {
    return new StartSingletonOptions<T>({ ...this.settings, ...change });
  }

  withTypeName(typeName: string): StartSingletonOptions<T> {
    return this.#with({ typeName });
  }
  withActor(actor: ActorOrFactory<T>): StartSingletonOptions<T> {
    return this.#with({ actor });
  }
  withRole(role: string): StartSingletonOptions<T> {
    return this.#with({ role });
  }
  withBufferSize(bufferSize: number): StartSingletonOptions<T> {
    return this.#with({ bufferSize });
  }
  withBufferBytes(bufferBytes: number): StartSingletonOptions<T> {
    return this.#with({ bufferBytes });
  }
  withLocalMessages(localMessages: LocalMessages): StartSingletonOptions<T> {
    return this.#with({ localMessages });
  }
  withOverflow(overflow: OverflowPolicy): StartSingletonOptions<T> {
    return this.#with({ overflow });
  }
  withDelivery(delivery: DeliveryMode): StartSingletonOptions<T> {
    return this.#with({ delivery });
  }
  withLease(lease: LeaseFactory | Lease): StartSingletonOptions<T> {
    return this.#with({ lease });
  }
  withAcquireRetryIntervalMs(acquireRetryIntervalMs: number): StartSingletonOptions<T> {
    return this.#with({ acquireRetryIntervalMs });
  }
  withHandOverTimeoutMs(handOverTimeoutMs: number): StartSingletonOptions<T> {
    return this.#with({ handOverTimeoutMs });
  }
  withHandOverPolicy(handOverPolicy: 'host-anyway' | 'wait-for-removal'): StartSingletonOptions<T> {
    return this.#with({ handOverPolicy });
  }
  withMaxHandOverStateBytes(maxHandOverStateBytes: number): StartSingletonOptions<T> {
    return this.#with({ maxHandOverStateBytes });
  }
  withRestartOnTermination(restartOnTermination: boolean): StartSingletonOptions<T> {
    return this.#with({ restartOnTermination });
  }
  withMoveAfterFailures(moveAfterFailures: number): StartSingletonOptions<T> {
    return this.#with({ moveAfterFailures });
  }
  withPlacement(placement: Placement): StartSingletonOptions<T> {
    return this.#with({ placement });
  }
  withStopTimeoutMs(stopTimeoutMs: number): StartSingletonOptions<T> {
    return this.#with({ stopTimeoutMs });
  }
  withActorOptions(actorOptions: SpawnOptions): StartSingletonOptions<T> {
    return this.#with({ actorOptions });
  }
}

export type StartOptionsInput<T> = StartSingletonOptions<T> | StartSingletonSettings<T>;

export function settingsOf<T>(input: StartOptionsInput<T> | undefined): StartSingletonSettings<T> {
  if (input instanceof StartSingletonOptions) return input.settings;
  if (input === undefined) return {};
  if (typeof input === 'object' && input !== null && !Array.isArray(input)) return input;
  throw new OptionsError(family, 'options', input, 'must be an object');
}

/** @throws OptionsError naming the field, its value and the rule */
export function resolveStart<T>(settings: StartSingletonSettings<T>): ResolvedStart<T> {
  checkOptions(family, settings, settingRules as Rules<StartSingletonSettings<T>>);
  const { typeName, actor, role } = settings;
  if (typeName === undefined) throw new OptionsError(family, 'typeName', typeName, 'is required');
  if (actor === undefined) throw new OptionsError(family, 'actor', actor, 'is required');
  checkTypeName(typeName, family);
  checkRole(role, family);
  checkSpawnOptions(settings.actorOptions);
  if (settings.actorOptions?.mailbox !== undefined) {
    throw new OptionsError(
      family,
      'actorOptions.mailbox',
      settings.actorOptions.mailbox,
      'must not be set for a singleton',
    );
  }
  return {
    typeName,
    actor,
    role,
    bufferSize: settings.bufferSize ?? 1_000,
    bufferBytes: settings.bufferBytes ?? 64 * 1024 * 1024,
    localMessages: settings.localMessages ?? 'shared',
    overflow: settings.overflow ?? 'drop-newest',
    delivery: settings.delivery ?? 'at-most-once',
    lease: settings.lease,
    acquireRetryIntervalMs: settings.acquireRetryIntervalMs ?? 5_000,
    handOverTimeoutMs: settings.handOverTimeoutMs,
    handOverPolicy: settings.handOverPolicy ?? 'host-anyway',
    maxHandOverStateBytes: settings.maxHandOverStateBytes ?? 1024 * 1024,
    restartOnTermination: settings.restartOnTermination ?? true,
    moveAfterFailures: settings.moveAfterFailures ?? 5,
    placement: settings.placement ?? 'oldest',
    stopTimeoutMs: settings.stopTimeoutMs ?? 10_000,
    actorOptions: settings.actorOptions ?? {},
  };
}

/** The fields in which two starts of one name ask for different things: the first stays, and a warning names them. */
export function differing(a: ResolvedStart<any>, b: ResolvedStart<any>): string[] {
  return (Object.keys(a) as (keyof ResolvedStart)[]).filter((field) => {
    switch (field) {
      // Functions made anew by each call cannot be compared.
      case 'actor':
        return isActorClass(a.actor) && isActorClass(b.actor) && a.actor !== b.actor;
      case 'lease':
        return (a.lease === undefined) !== (b.lease === undefined);
      case 'actorOptions':
        return JSON.stringify(a.actorOptions) !== JSON.stringify(b.actorOptions);
      default:
        return a[field] !== b[field];
    }
  });
}
