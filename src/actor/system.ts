/// <reference lib="esnext.disposable" preserve="true" />
/** The actor system: the root of all actors of one node, and what they share. */
import type { ClusterHandle } from '../cluster/cluster_handle.ts';
import { Actor, type ActorOrFactory } from './actor.ts';
import { Asks } from './ask.ts';
import { Cell } from './cell.ts';
import { descend } from './cell_family.ts';
import { CoordinatedShutdown } from './coordinated_shutdown.ts';
import { DeadLetters } from './dead_letters.ts';
import { Dispatcher } from './dispatcher.ts';
import type { Environment, Logger, LogLevel } from './environment.ts';
import { ActorUsageError, ClusterDisabledError, SystemTerminatedError } from './errors.ts';
import { EventStream } from './event_stream.ts';
import { type LocalActorRef, NoSender } from './local_ref.ts';
import { consoleLogger, safeLogger } from './logger.ts';
import { checkName, splitPath } from './names.ts';
import { checkOptions, type Rules, rules } from './options.ts';
import { realEnvironment } from './real_environment.ts';
import type { ActorRef } from './ref.ts';
import { localRefProvider, type RefProvider } from './ref_provider.ts';
import { type CellOptions, checkSpawnOptions, type SpawnOptions } from './spawn_options.ts';
import { SupervisorStrategy } from './supervision.ts';
import { Termination } from './termination.ts';

/** Options of `ActorSystem.create`. All fields are optional. */
export interface ActorSystemOptions {
  /** Parts of the world to be replaced, for tests. */
  readonly environment?: Partial<Environment>;
  /** Default: the console. */
  readonly logger?: Logger;
  /** Level of the console log when no logger is given. Default `warn`. */
  readonly logLevel?: LogLevel;
  /** For actors whose spawn options and parents name no strategy. Default: restart, at most 10 times in 60 s. */
  readonly defaultSupervisor?: SupervisorStrategy;
  /** How long `terminate` lets the actors under `/user` finish what is in their mailboxes. Default 2000. */
  readonly drainTimeoutMs?: number;
  /** How long `terminate` waits for actors to stop before it kills them. Default 10 000. */
  readonly stopTimeoutMs?: number;
  /** Bound on the whole coordinated shutdown. Default 60 000. */
  readonly shutdownTimeoutMs?: number;
}

const logMethods = ['debug', 'info', 'warn', 'error'] as const;
const loggerRule = {
  rule: 'must be a Logger: a level, and the methods debug, info, warn and error',
  accepts: (value: unknown) =>
    typeof value === 'object' && value !== null && typeof (value as Logger).level === 'string' &&
    logMethods.every((method) => typeof (value as Logger)[method] === 'function'),
};

const optionRules: Rules<ActorSystemOptions> = {
  environment: rules.object,
  logger: loggerRule,
  logLevel: rules.oneOf('debug', 'info', 'warn', 'error', 'off'),
  defaultSupervisor: rules.instance(SupervisorStrategy as unknown as abstract new () => unknown),
  drainTimeoutMs: rules.durationMs(0),
  stopTimeoutMs: rules.durationMs(0),
  shutdownTimeoutMs: rules.durationMs(0),
};

const askRoot = '/temp/';

/** The parent of top-level actors. */
class Guardian extends Actor<unknown> {
  override onReceive(message: unknown): void {
    const { self, sender, hasSender, system } = this.context;
    const from = hasSender ? sender : undefined;
    system.deadLetters.publish({ message, sender: from, recipient: self.path, reason: 'no-such-actor' });
  }
}

/**
 * Where actors live: it spawns them, delivers their messages, and ends them. `ActorSystem.create(name)` makes one; a cluster is
 * joined with it.
 */
export class ActorSystem {
  readonly name: string;
  readonly environment: Environment;
  readonly log: Logger;
  readonly eventStream: EventStream;
  readonly deadLetters: DeadLetters;
  readonly coordinatedShutdown: CoordinatedShutdown;
  readonly defaultSupervisor: SupervisorStrategy;
  /** What other layers attach to this system, by name. */
  readonly extensions: Map<string, unknown> = new Map();
  /** Stands in for the sender of messages that have none. */
  readonly noSender: ActorRef<unknown>;
  /** Resolves when the system has terminated. Never rejects. */
  readonly whenTerminated: Promise<void>;
  /** Set by a cluster, so that refs and watches reach other nodes. */
  refProvider: RefProvider;
  /** For the runtime itself. */
  readonly dispatcher: Dispatcher;
  readonly asks: Asks;
  private readonly userGuardian: Cell;
  private readonly systemGuardian: Cell;
  private readonly termination: Termination;
  /** Refs count from here. Random, so that one from an earlier process at this address means nobody here. */
  readonly firstIncarnation: number;
  private refs = 0;

  private constructor(name: string, options: ActorSystemOptions) {
    const { environment, log } = environmentOf(options);
    this.name = name;
    this.environment = environment;
    this.log = log;
    this.defaultSupervisor = options.defaultSupervisor ?? SupervisorStrategy.oneForOne();
    this.dispatcher = new Dispatcher(environment.clock, environment.turns);
    this.eventStream = new EventStream(log);
    this.deadLetters = new DeadLetters(this.eventStream, log);
    this.firstIncarnation = Math.floor(environment.random.next() * 2 ** 48);
    this.asks = new Asks(environment, name, (ask, message, sender) => {
      this.deadLetters.publish({ message, sender, recipient: ask.path, reason: 'terminated', detail: 'late reply' });
    });
    this.noSender = new NoSender((message, sender) => {
      const detail = 'the message replied to had no sender';
      this.deadLetters.publish({ message, sender, recipient: '/deadLetters', reason: 'no-such-actor', detail });
    });
    this.refProvider = localRefProvider(this);
    this.userGuardian = new Cell(this, undefined, 'user', Guardian, {}, true);
    this.systemGuardian = new Cell(this, undefined, 'system', Guardian, {}, true);
    const { drainTimeoutMs = 2_000, stopTimeoutMs = 10_000, shutdownTimeoutMs } = options;
    this.termination = new Termination(
      environment,
      this.userGuardian,
      this.systemGuardian,
      drainTimeoutMs,
      stopTimeoutMs,
    );
    this.whenTerminated = this.termination.finished.then(() => this.asks.close());
    this.coordinatedShutdown = new CoordinatedShutdown(
      environment,
      shutdownTimeoutMs === undefined ? {} : { totalTimeoutMs: shutdownTimeoutMs },
    );
    // It bounds itself: draining, then each of the two guardians. The second more lets it end by its own bound.
    this.coordinatedShutdown.setPhaseTimeout('actor-system-terminate', drainTimeoutMs + 2 * stopTimeoutMs + 1_000);
    this.coordinatedShutdown.addTask('actor-system-terminate', 'terminate the actor system', () => {
      this.termination.start();
      return this.whenTerminated;
    });
  }

  /** @throws OptionsError, ActorNameError */
  static create(name: string, options: ActorSystemOptions = {}): ActorSystem {
    checkName(name);
    checkOptions('ActorSystemOptions', options, optionRules);
    return new ActorSystem(name, options);
  }

  /**
   * Starts an actor at `/user/<name>`.
   * @throws ActorNameError, ActorAlreadyExistsError, OptionsError, SystemTerminatedError
   */
  spawn<T>(source: ActorOrFactory<T>, name: string, options?: SpawnOptions): ActorRef<T> {
    this.checkAlive(`spawn '${name}'`);
    return this.userGuardian.spawn(source, name, options).ref;
  }

  spawnAnonymous<T>(source: ActorOrFactory<T>, options?: SpawnOptions): ActorRef<T> {
    this.checkAlive('spawn an actor');
    return this.userGuardian.spawnAnonymous(source, options).ref;
  }

  /** For other layers: starts an actor at `/system/<path>`, below actors that are there; levels without one are made. */
  spawnSystem<T>(path: readonly string[], source: ActorOrFactory<T>, options?: CellOptions): LocalActorRef<T> {
    if (this.systemGuardian.isTerminated) throw new SystemTerminatedError(this.name, `spawn ${path.join('/')}`);
    const name = path.at(-1);
    if (name === undefined) throw new ActorUsageError('spawnSystem takes a path of at least one name');
    let parent = this.systemGuardian;
    for (const level of path.slice(0, -1)) parent = parent.guardianChild(level, Guardian);
    return parent.spawn(source, name, checkSpawnOptions(options)).ref as LocalActorRef<T>;
  }

  /**
   * The same as `cluster.singleton.spawn`, for a system that has joined a cluster.
   * @throws ClusterDisabledError (with code `cluster-disabled`) otherwise
   */
  async spawnSingleton(name: string, kind: unknown, options: object = {}): Promise<ActorRef<any>> {
    const cluster = this.extensions.get('cluster') as ClusterHandle | undefined;
    if (cluster === undefined) throw new ClusterDisabledError(this.name);
    return await cluster.singleton.spawn(name, kind as never, options);
  }

  /** The local actor at exactly this path (`/user/a/b`); undefined when there is none, or when it is spelled otherwise. */
  resolve(path: string): ActorRef<any> | undefined {
    // Every reply comes this way. Names of asks hold no slash, so nothing else is found here.
    if (path.startsWith(askRoot)) return this.asks.find(path.slice(askRoot.length));
    const [root, ...names] = splitPath(path) ?? [];
    if (root === 'user') return descend(this.userGuardian, names)?.ref;
    return root === 'system' ? descend(this.systemGuardian, names)?.ref : undefined;
  }

  get isTerminating(): boolean {
    return this.termination.started;
  }

  /**
   * Runs the coordinated shutdown, whose last phase lets `/user` drain, stops `/user` and then `/system`. Bounded, and
   * idempotent: every call gives the same promise, which never rejects.
   */
  terminate(): Promise<void> {
    return this.coordinatedShutdown.run('terminate');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.terminate();
  }

  /** For the runtime: a number that no other actor of this system has; small ones cost less. */
  nextSerial(): number {
    this.refs += 1;
    return this.refs;
  }

  private checkAlive(operation: string): void {
    if (this.termination.started) throw new SystemTerminatedError(this.name, operation);
  }
}

function environmentOf(options: ActorSystemOptions): { environment: Environment; log: Logger } {
  const given = options.environment;
  const ofEnvironment = options.logLevel === undefined ? given?.log : undefined;
  const log = safeLogger(options.logger ?? ofEnvironment ?? consoleLogger(options.logLevel));
  return { environment: { ...realEnvironment(log), ...given, log }, log };
}
