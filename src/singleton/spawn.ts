/** `cluster.singleton.spawn` and what keeps spawned singletons running: every node that has a kind starts what is registered. */
import { checkOptions, type Rules, rules } from '../actor/options.ts';
import type { ActorRef } from '../actor/ref.ts';
import { SupervisorStrategy } from '../actor/supervision.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { KindOption } from '../cluster/cluster_options.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { StartedRecord } from '../cluster/member.ts';
import { limits } from '../limits.ts';
import { checkRole, checkTypeName } from './key.ts';
import { kindFactories, type KindFactory, type KindName, kindNameOf } from './kinds.ts';
import type { DeliveryMode, OverflowPolicy } from './sender_stream.ts';
import { ClusterDisabledError } from './spawn_errors.ts';
import {
  kindMark,
  type Registration,
  registrations,
  type SpawnSettings,
  type SpawnSupervisor,
} from './spawn_registration.ts';
import { retryOptions, Spawner, spawnWithRetries } from './spawner.ts';
import type { StartSingletonSettings } from './start_options.ts';

export interface SpawnSingletonOptions {
  /** Only members with this role host it. Part of its identity. */
  readonly role?: string;
  /** Given to the kind's constructor or factory on whichever node hosts; must be something the codec can carry. */
  readonly props?: unknown;
  /** Bound on the whole call. Default 30 000 ms. */
  readonly spawnTimeoutMs?: number;
  /** Wait after the first failed attempt; doubles with each, with jitter. Default 500 ms. */
  readonly waitIntervalMs?: number;
  /** Attempts, the first included. Default 5. */
  readonly retries?: number;
  readonly signal?: AbortSignal;
  /** How its failures are answered, wherever it runs. Default: that system's default supervisor. */
  readonly supervisor?: SpawnSupervisor;
  readonly delivery?: DeliveryMode;
  readonly overflow?: OverflowPolicy;
  readonly bufferSize?: number;
}

const family = 'SpawnOptions';
const optionRules: Rules<SpawnSingletonOptions> = {
  role: rules.text(limits.roleChars),
  props: rules.anything,
  spawnTimeoutMs: rules.durationMs(1),
  waitIntervalMs: rules.durationMs(1),
  retries: rules.integer(1, 1_000),
  signal: rules.object,
  supervisor: rules.object,
  delivery: rules.oneOf('at-most-once', 'at-least-once'),
  overflow: rules.oneOf('drop-newest', 'drop-oldest', 'fail-ask'),
  bufferSize: rules.integer(1, limits.proxyBuffer),
};
const supervisorRules: Rules<SpawnSupervisor> = {
  directive: rules.oneOf('restart', 'resume', 'stop'),
  maxRestarts: rules.integer(0),
  withinMs: rules.durationMs(1),
  backoff: rules.object,
};

export interface SpawnPort {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  readonly kinds: readonly KindOption[];
  start(settings: StartSingletonSettings<any>): void;
  stop(name: string): void;
  isStarted(name: string): boolean;
  ref(name: string): ActorRef<any>;
  ended(): boolean;
}

export class SpawnDesk {
  /** What this node's record says about its kinds, beside the singletons it has started. */
  readonly marks: ReadonlyMap<string, StartedRecord>;
  readonly #port: SpawnPort;
  readonly #spawner: Spawner;
  readonly #factories: ReadonlyMap<string, KindFactory>;
  readonly #running = new Set<string>();
  readonly #refused = new Set<string>();

  constructor(port: SpawnPort) {
    this.#port = port;
    this.#factories = kindFactories(port.kinds, port.node.environment.log);
    this.marks = new Map(
      [...this.#factories.keys()].map((kind) => [kindMark(kind), { generation: 1, role: undefined }]),
    );
    this.#spawner = new Spawner(port.system, port.node);
  }

  async spawn(name: string, kind: KindName, options: SpawnSingletonOptions): Promise<ActorRef<any>> {
    checkTypeName(name, family);
    checkOptions(family, options, optionRules);
    checkRole(options.role, family);
    const { node } = this.#port;
    const wanted: Registration = {
      name,
      kind: kindNameOf(kind, node.environment.log),
      role: options.role,
      props: options.props,
      settings: settingsOf(options),
    };
    const retries = retryOptions(options as Parameters<typeof retryOptions>[0]);
    if (this.#port.ended()) throw new ClusterDisabledError('cluster-disabled', 'this node has left the cluster');
    await spawnWithRetries(this.#spawner, node, wanted, retries);
    return this.#port.ref(name);
  }

  despawn(name: string): boolean {
    checkTypeName(name, family);
    return this.#spawner.remove(name);
  }

  /** Names that run here because they are registered. */
  get running(): ReadonlySet<string> {
    return this.#running;
  }

  /** Brings what runs here in line with what is registered. */
  reconcile(): void {
    const { node } = this.#port;
    const registered = new Map(registrations(node.view()).map((one) => [one.name, one]));
    for (const name of [...this.#running]) {
      if (registered.has(name)) continue;
      this.#running.delete(name);
      this.#port.stop(name);
    }
    for (const one of registered.values()) if (!this.#running.has(one.name)) this.#start(one);
  }

  #start(one: Registration): void {
    const factory = this.#factories.get(one.kind);
    if (!factory || this.#refused.has(one.name)) return;
    const { log } = this.#port.node.environment;
    if (this.#port.isStarted(one.name)) {
      this.#refused.add(one.name);
      return log.warn(
        `singleton ${one.name} is registered, but this node started one of that name itself: that one stays`,
      );
    }
    const { supervisor, ...settings } = one.settings;
    try {
      this.#port.start({
        ...settings,
        typeName: one.name,
        actor: factory(one.props),
        ...(one.role === undefined ? {} : { role: one.role }),
        ...(supervisor ? { actorOptions: { supervisor: strategyOf(supervisor) } } : {}),
      });
      this.#running.add(one.name);
    } catch (error) {
      // Still stopping from before: the next change of the view tries again.
      log.debug(`singleton ${one.name} could not be started yet`, { error });
    }
  }
}

function settingsOf(options: SpawnSingletonOptions): SpawnSettings {
  const { supervisor, delivery, overflow, bufferSize } = options;
  if (supervisor) {
    checkOptions('SpawnSupervisor', supervisor, supervisorRules);
    strategyOf(supervisor);
  }
  return {
    ...(supervisor ? { supervisor } : {}),
    ...(delivery ? { delivery } : {}),
    ...(overflow ? { overflow } : {}),
    ...(bufferSize ? { bufferSize } : {}),
  };
}

/** @throws OptionsError */
function strategyOf({ directive, ...options }: SpawnSupervisor): SupervisorStrategy {
  return SupervisorStrategy.oneForOne({ ...options, ...(directive ? { decider: () => directive } : {}) });
}
