/** What runs on one node because it is registered. A registration that takes the place of another is started anew. */
import type { Cancel } from '../actor/environment.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { ClusterEntry } from '../cluster/member.ts';
import type { KindFactory } from './kinds.ts';
import { readRegistration, type Registration } from './spawn_registration.ts';
import { strategyOf } from './spawn_settings.ts';
import type { StartSingletonSettings } from './start_options.ts';

export interface SpawnedPort {
  readonly node: MembershipNode;
  start(settings: StartSingletonSettings<any>): void;
  stop(name: string): void;
  isStarted(name: string): boolean;
}

/** Waits before what could not be started is tried again: the first, and the longest. */
const retryMs = 50;
const longestRetryMs = 5_000;

export class SpawnedSet {
  readonly #port: SpawnedPort;
  readonly #factories: ReadonlyMap<string, KindFactory>;
  /** By name: the entry it was started from. */
  readonly #running = new Map<string, ClusterEntry>();
  /** Names that cannot be started, each with the reason that was logged. */
  readonly #held = new Map<string, string>();
  #seen: ReadonlyMap<string, ClusterEntry> | undefined;
  #retry: Cancel | undefined;
  #retryMs = retryMs;
  #ended = false;

  constructor(port: SpawnedPort, factories: ReadonlyMap<string, KindFactory>) {
    this.#port = port;
    this.#factories = factories;
  }

  runs(name: string): boolean {
    return this.#running.has(name);
  }

  end(): void {
    this.#ended = true;
    this.#retry?.();
  }

  reconcile(): void {
    const { entries } = this.#port.node.view();
    if (this.#ended || (entries === this.#seen && this.#held.size === 0)) return;
    this.#seen = entries;
    for (const [name, entry] of [...this.#running]) {
      const now = entries.get(entry.key);
      if (now?.version === entry.version && now.by === entry.by) continue;
      this.#running.delete(name);
      this.#port.stop(name);
    }
    const held = new Set<string>();
    for (const entry of entries.values()) {
      const registration = readRegistration(entry);
      if (!registration || this.#running.has(registration.name)) continue;
      if (!this.#start(registration, entry)) held.add(registration.name);
    }
    for (const name of this.#held.keys()) if (!held.has(name)) this.#held.delete(name);
    if (held.size > 0) this.#retryLater();
    else this.#retryMs = retryMs;
  }

  /** False when it should run here and does not. */
  #start(one: Registration, entry: ClusterEntry): boolean {
    const factory = this.#factories.get(one.kind);
    if (!factory) return true;
    if (this.#port.isStarted(one.name)) {
      return this.#hold(one.name, 'this node has started one of that name itself, which stays', 'warn');
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
    } catch (error) {
      // Mostly: the one before is still stopping.
      return this.#hold(one.name, error instanceof Error ? error.message : String(error));
    }
    this.#running.set(one.name, entry);
    return true;
  }

  #hold(name: string, why: string, level: 'info' | 'warn' = 'info'): false {
    if (this.#held.get(name) !== why) {
      this.#held.set(name, why);
      this.#port.node.environment.log[level](`singleton ${name} is registered and not started here yet: ${why}`);
    }
    return false;
  }

  /** There may be no change of the view that would try again. */
  #retryLater(): void {
    if (this.#retry) return;
    this.#retry = this.#port.node.environment.timers.set(this.#retryMs, () => {
      this.#retry = undefined;
      this.reconcile();
    });
    this.#retryMs = Math.min(longestRetryMs, this.#retryMs * 2);
  }
}
