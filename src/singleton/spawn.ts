/** `cluster.singleton.spawn` and `despawn`: the calls, and on each node what is registered started like one of its own. */
import { checkOptions, type Rules, rules } from '../actor/options.ts';
import type { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { KindOption } from '../cluster/cluster_options.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { StartedRecord } from '../cluster/member.ts';
import { limits } from '../limits.ts';
import { checkRole, checkTypeName } from './key.ts';
import { kindFactories, type KindName, kindNameOf } from './kinds.ts';
import { type SpawnError, spawnError } from './spawn_errors.ts';
import type { Done } from './spawn_leader.ts';
import { kindMark, readRegistration, settled, spawnKey } from './spawn_registration.ts';
import { retrying, type RetryOptions, retryOptions } from './spawn_retries.ts';
import { SpawnedSet } from './spawned_set.ts';
import { settingsOf, settingsRules, type SpawnSettings } from './spawn_settings.ts';
import { Spawner } from './spawner.ts';
import type { StartSingletonSettings } from './start_options.ts';

/** Of a call that waits for the cluster. */
export interface SpawnCallOptions {
  /** Bound on the whole call. Default 30 000 ms. */
  readonly spawnTimeoutMs?: number;
  /** Wait after the first failed attempt; doubles with each, with jitter. Default 500 ms. */
  readonly waitIntervalMs?: number;
  /** Attempts, the first included. Default 5. */
  readonly retries?: number;
  /** Ends the wait with code `aborted`. What has been asked of the cluster may happen all the same. */
  readonly signal?: AbortSignal;
}

/** `supervisor`: how its failures are answered, wherever it runs; default: that system's default supervisor. */
export interface SpawnSingletonOptions extends SpawnCallOptions, SpawnSettings {
  /** Only members with this role host it. Part of its identity. */
  readonly role?: string;
  /**
   * Given to the kind's constructor or factory on whichever node hosts: plain data that can be sent, at most 64 KiB with the
   * rest of the registration.
   */
  readonly props?: unknown;
}

const family = 'SpawnOptions';
const callRules: Rules<SpawnCallOptions> = {
  spawnTimeoutMs: rules.durationMs(1),
  waitIntervalMs: rules.durationMs(1),
  retries: rules.integer(1, 1_000),
  signal: rules.object,
};
const optionRules: Rules<SpawnSingletonOptions> = {
  role: rules.text(limits.roleChars),
  props: rules.anything,
  ...callRules,
  ...settingsRules,
};

export interface SpawnPort {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  readonly kinds: readonly KindOption[];
  /** The desk of the membership that this process has now; another one after it was removed and has joined again. */
  desk(): SpawnDesk;
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
  readonly #set: SpawnedSet;

  constructor(port: SpawnPort) {
    this.#port = port;
    const factories = kindFactories(port.kinds, port.node.environment.log);
    this.marks = new Map([...factories.keys()].map((kind) => [kindMark(kind), { generation: 1, role: undefined }]));
    this.#set = new SpawnedSet(port, factories);
    this.#spawner = new Spawner(port.node, (name, asHost) => this.#isFree(name, asHost));
    port.node.onChange((_view, changes) => {
      if (changes.some((change) => change.kind === 'self-removed')) this.#set.end();
    });
  }

  async spawn(name: string, kind: KindName, options: SpawnSingletonOptions): Promise<ActorRef<any>> {
    checkTypeName(name, family);
    checkOptions(family, options, optionRules);
    checkRole(options.role, family);
    const { log } = this.#port.node.environment;
    const { role, props } = options;
    const wanted = settled({ name, kind: kindNameOf(kind, log), role, props, settings: settingsOf(options) });
    const calling = retryOptions(options as Partial<RetryOptions>);
    await this.#retry(`the spawn of '${name}'`, calling, (desk, done) => desk.#spawner.attempt(wanted, done));
    return this.#port.ref(name);
  }

  async despawn(name: string, options: SpawnCallOptions): Promise<boolean> {
    checkTypeName(name, family);
    checkOptions(family, options, callRules);
    const calling = retryOptions(options as Partial<RetryOptions>);
    let removed: { readonly clusterId: string | undefined; readonly version: number } | undefined;
    await this.#retry(`the removal of '${name}'`, calling, (desk, done) => {
      const { node } = desk.#port;
      const key = spawnKey(name);
      const entry = node.view().entries.get(key);
      // What has been registered since by somebody who knew of the removal stays.
      const again = removed !== undefined && removed.clusterId === node.view().clusterId &&
        (entry?.version ?? 0) > removed.version;
      if (!readRegistration(entry) ? removed === undefined : again) return done(undefined);
      if (readRegistration(entry)) {
        node.writeEntry(key, null);
        removed = { clusterId: node.view().clusterId, version: node.view().entries.get(key)?.version ?? 0 };
      }
      desk.#spawner.confirmEntry(key, done);
    });
    return removed !== undefined;
  }

  #retry(what: string, options: RetryOptions, attempt: (desk: SpawnDesk, done: Done) => void): Promise<void> {
    const { environment } = this.#port.node;
    const left = (): SpawnError => spawnError('cluster-disabled', 'this node has left the cluster');
    return retrying({
      what,
      environment,
      attempt: (done) => {
        if (this.#port.ended()) return done(left());
        attempt(this.#port.desk(), (error) => done(error && this.#port.ended() ? left() : error));
      },
    }, options);
  }

  #isFree(name: string, asHost: boolean): boolean {
    if (asHost && this.#port.system.resolve(`/user/${name}`) !== undefined) return false;
    return this.#set.runs(name) || !this.#port.isStarted(name);
  }

  /** True for names that run here because they are registered. */
  runs(name: string): boolean {
    return this.#set.runs(name);
  }

  /** Brings what runs here in line with what is registered. */
  reconcile(): void {
    this.#set.reconcile();
  }
}
