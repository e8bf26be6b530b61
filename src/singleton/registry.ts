/** `cluster.singleton`: the singletons of one node, and the routing of messages about them. */
import type { Actor, ActorOrFactory } from '../actor/actor.ts';
import type { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { KindOption } from '../cluster/cluster_options.ts';
import type { MemberChange, MembershipNode } from '../cluster/contract.ts';
import type { HostingClaim, StartedRecord } from '../cluster/member.ts';
import { textOf, WireError } from '../cluster/wire_checks.ts';
import type { Lease } from '../coordination/lease.ts';
import { limits } from '../limits.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import { eligibleHosts, hostOf, pinKey, roleOf } from './host.ts';
import { managerPath } from './instance.ts';
import type { KindName } from './kinds.ts';
import type { SingletonKey } from './key.ts';
import { defaultManagerConfig, hasInstance } from './manager.ts';
import { ManagerActor } from './manager_actor.ts';
import type { ManagerConfig } from './manager_state.ts';
import { nameOf, type SimpleSingletonClass, type SingletonClass, type SingletonName, startSettings } from './naming.ts';
import { Singleton } from './singleton.ts';
import { SpawnDesk, type SpawnSingletonOptions } from './spawn.ts';
import { differs, type ResolvedStart, resolveStart, type StartOptionsInput } from './start_options.ts';

export class SingletonStateError extends Error {
  override readonly name = 'SingletonStateError';
}

const messageCodes = [
  codes.handOverRequest,
  codes.handOverAnswer,
  codes.handOverWithdraw,
  codes.stateChunk,
  codes.streamOpen,
  codes.streamOpened,
  codes.deliver,
  codes.acknowledge,
  codes.refuse,
];

export interface RegistryOptions {
  readonly handOverTimeoutMs: number;
  /** Kinds this node can make, for `spawn`. */
  readonly kinds?: readonly KindOption[];
  /** Throws `OptionsError` when a singleton's own time-out breaks the timing rules. */
  readonly checkHandOverTimeout: (family: string, field: string, ms: number) => void;
  /** For leases. */
  readonly driftBound: number;
  /** The voters that quorum leases ask. */
  readonly arbiter?: unknown;
}

export class SingletonRegistry {
  readonly #system: ActorSystem;
  readonly #node: MembershipNode;
  readonly #options: RegistryOptions;
  readonly #singletons = new Map<string, Singleton>();
  readonly #spawns: SpawnDesk;
  #generation = 0;
  #started: ReadonlyMap<string, StartedRecord> = new Map();
  #hosting: ReadonlyMap<string, HostingClaim> = new Map();
  #leaveDone: (() => void) | undefined;
  #ended = false;
  /** Messages about singletons that were not well-formed. */
  malformed = 0;

  constructor(system: ActorSystem, node: MembershipNode, options: RegistryOptions) {
    this.#system = system;
    this.#node = node;
    this.#options = options;
    for (const code of messageCodes) node.onMessage(code, (peer, envelope) => this.#onMessage(peer, envelope));
    node.onChange((_view, changes) => this.#onChange(changes));
    node.onSelfDown((down) => this.#onSelfDown(down.why));
    node.onLeaving((done) => this.#onLeaving(done));
    this.#spawns = new SpawnDesk({
      system,
      node,
      kinds: options.kinds ?? [],
      start: (settings) => void this.#start(resolveStart(settings)),
      stop: (name) => this.stop(name),
      isStarted: (name) => this.isStarted(name),
      ref: (name) => this.ref(name),
      ended: () => this.#ended,
    });
    this.#publish();
  }

  /** Starts the singleton named by the class. Get-or-create: a second start returns the same ref. */
  start<T>(type: SimpleSingletonClass<T>): ActorRef<T>;
  start<T>(type: SimpleSingletonClass<T>, options: StartOptionsInput<T>): ActorRef<T>;
  start<T>(type: SingletonClass<T>, factory: () => Actor<T>, options?: StartOptionsInput<T>): ActorRef<T>;
  start<T>(key: SingletonKey<T>, actor: ActorOrFactory<T>, options?: StartOptionsInput<T>): ActorRef<T>;
  start<T>(options: StartOptionsInput<T>): ActorRef<T>;
  start(first: any, second?: any, third?: any): ActorRef<any> {
    return this.#start(resolveStart(startSettings(first, second, third)));
  }

  /** The ref of a singleton, whether or not this node started it. Never makes this node a host. */
  ref<T>(name: SingletonName<T>): ActorRef<T> {
    return this.#singleton(nameOf(name)).ref;
  }

  /** Takes this node out of the running; an instance here stops, and another node that started it takes over. */
  stop(name: SingletonName<any>): void {
    const singleton = this.#singletons.get(nameOf(name));
    if (!singleton?.manager.start) return;
    singleton.manager.start = undefined;
    singleton.manager.feed({ kind: 'stop' });
    this.#system.resolve('/system/' + managerPath(singleton.name).join('/'))?.stop();
  }

  /**
   * Registers the singleton `name` of a kind with the cluster, from any node, and resolves with its ref once a majority knows
   * it. It runs on the oldest member that has the kind (`ClusterOptions.withKinds`) and carries the role, like any singleton.
   * The same name, kind and role again is the same singleton.
   * @throws SpawnError, a closed union with `code` and `retryable`; OptionsError for a bad name or option
   */
  spawn<T = any>(name: string, kind: KindName, options: SpawnSingletonOptions = {}): Promise<ActorRef<T>> {
    return this.#spawns.spawn(name, kind, options);
  }

  /** Removes a spawned singleton from the cluster: it stops everywhere. False when there is none of that name. */
  despawn(name: string): boolean {
    return this.#spawns.despawn(name);
  }

  isStarted(name: SingletonName<any>): boolean {
    return this.#singletons.get(nameOf(name))?.manager.start !== undefined;
  }

  /** The manager of a started singleton; undefined once it is stopped. */
  managerFor(name: SingletonName<any>): ActorRef<unknown> | undefined {
    if (!this.isStarted(name)) return undefined;
    return this.#system.resolve('/system/' + managerPath(nameOf(name)).join('/'));
  }

  /**
   * Hands the singleton over to the member at `address`, or to the next one that may host it, and keeps it there until that
   * member leaves.
   * @throws SingletonStateError when nobody suitable is there
   */
  move(name: SingletonName<any>, address?: string): void {
    const typeName = nameOf(name);
    const view = this.#node.view();
    const candidates = eligibleHosts(view, typeName);
    const target = address === undefined ? candidates[1] : candidates.find((member) => member.address === address);
    if (!target) {
      const who = address === undefined ? 'no other member' : `no eligible member at ${address}`;
      throw new SingletonStateError(`singleton ${typeName}: ${who} could host it`);
    }
    this.#node.writeEntry(pinKey(typeName), target.uid);
  }

  /** Every singleton this node knows of, for inspection. */
  all(): Iterable<Singleton> {
    return this.#singletons.values();
  }

  find(name: string): Singleton | undefined {
    return this.#singletons.get(name);
  }

  #start(start: ResolvedStart<any>): ActorRef<any> {
    if (this.#ended) throw new SingletonStateError('this node has left the cluster');
    if (start.handOverTimeoutMs !== undefined) {
      this.#options.checkHandOverTimeout('StartSingletonOptions', 'handOverTimeoutMs', start.handOverTimeoutMs);
    }
    const singleton = this.#singleton(start.typeName);
    const { manager } = singleton;
    if (manager.start) {
      if (differs(manager.start, start)) {
        this.#node.environment.log.warn(
          `singleton ${start.typeName} is started already: the later options are ignored`,
        );
      }
      return singleton.ref;
    }
    const path = '/system/' + managerPath(start.typeName).join('/');
    if (hasInstance(manager.state.phase) || this.#system.resolve(path) !== undefined) {
      throw new SingletonStateError(
        `singleton ${start.typeName} is still stopping on this node; start it when it has stopped`,
      );
    }
    const role = roleOf(this.#node.view(), start.typeName);
    if (role !== start.role && this.#node.view().members.some((member) => member.started.has(start.typeName))) {
      this.#node.environment.log.warn(
        `singleton ${start.typeName}: started with role ${start.role ?? 'none'}, but its oldest starter says ${
          role ?? 'none'
        }, which counts`,
      );
    }
    manager.useLease(this.#leaseOf(start), start.acquireRetryIntervalMs);
    manager.start = start;
    singleton.proxy.configure(start);
    this.#system.spawnSystem(managerPath(start.typeName), () => new ManagerActor(), {});
    this.#generation += 1;
    manager.feed({
      kind: 'start',
      record: { generation: this.#generation, role: start.role },
      config: this.#config(start),
    });
    // The capability is published by now; the view that has it decides who hosts.
    manager.feed({ kind: 'view' });
    singleton.proxy.retarget();
    return singleton.ref;
  }

  #config(start: ResolvedStart<any>): ManagerConfig {
    return {
      ...defaultManagerConfig,
      handOverTimeoutMs: start.handOverTimeoutMs ?? this.#options.handOverTimeoutMs,
      handOverPolicy: start.handOverPolicy,
      restartOnTermination: start.restartOnTermination,
      moveAfterFailures: start.moveAfterFailures,
      stopTimeoutMs: start.stopTimeoutMs,
      lease: start.lease !== undefined,
      acquireRetryIntervalMs: start.acquireRetryIntervalMs,
    };
  }

  #leaseOf({ lease, typeName }: ResolvedStart<any>): Lease | undefined {
    if (typeof lease !== 'function') return lease;
    const { address, uid, environment } = this.#node;
    const { driftBound, arbiter } = this.#options;
    return lease({ name: typeName, owner: `${address}#${uid}`, environment, driftBound, arbiter });
  }

  #singleton(name: string): Singleton {
    let singleton = this.#singletons.get(name);
    if (!singleton) {
      if (this.#singletons.size >= limits.singletons) {
        throw new SingletonStateError(`this node knows ${limits.singletons} singletons already`);
      }
      singleton = new Singleton(name, {
        system: this.#system,
        node: this.#node,
        changed: () => this.#publish(),
        leaveDone: () => this.#checkLeave(),
      });
      this.#singletons.set(name, singleton);
      if (this.#ended) singleton.proxy.end();
    }
    return singleton;
  }

  /** Tells the cluster what this node has started and hosts, whenever either has changed. */
  #publish(): void {
    if (this.#ended || !this.#spawns) return;
    const started = new Map<string, StartedRecord>(this.#spawns.marks);
    const hosting = new Map<string, HostingClaim>();
    for (const { name, manager } of this.#singletons.values()) {
      if (manager.state.started && !manager.state.withdrawn) started.set(name, manager.state.started);
      if (manager.claim) hosting.set(name, manager.claim);
    }
    const same = sameEntries(started, this.#started) && sameEntries(hosting, this.#hosting);
    if (same) return;
    this.#started = started;
    this.#hosting = hosting;
    this.#node.publish({ started, hosting });
  }

  #onMessage(peer: PeerIdentity, envelope: Envelope): void {
    try {
      const name = textOf(envelope[1], limits.typeNameChars, 'singleton name');
      const known = this.#singletons.get(name);
      if (known) return known.onMessage(peer, envelope);
      // Questions are answered for names never heard of; nothing else about them concerns this node.
      if (envelope[0] === codes.handOverRequest || envelope[0] === codes.streamOpen) {
        if (this.#singletons.size < limits.singletons) this.#singleton(name).onMessage(peer, envelope);
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.malformed += 1;
      this.#node.environment.log.warn('a malformed singleton message was dropped', {
        from: peer.address,
        code: envelope[0],
        why: error.message,
      });
    }
  }

  #onChange(changes: readonly MemberChange[]): void {
    for (const change of changes) {
      if (change.kind === 'self-removed') return this.#end();
      if (change.kind === 'member' && change.member.status === 'removed') {
        for (const singleton of this.#singletons.values()) singleton.onMemberGone(change.member.uid);
      }
    }
    this.#spawns.reconcile();
    for (const singleton of [...this.#singletons.values()]) singleton.onView();
  }

  #onSelfDown(why: string): void {
    for (const { manager } of this.#singletons.values()) manager.feed({ kind: 'self-down', why });
  }

  #onLeaving(done: () => void): void {
    this.#leaveDone = done;
    for (const { manager } of [...this.#singletons.values()]) manager.feed({ kind: 'leave' });
    this.#checkLeave();
  }

  #checkLeave(): void {
    if (!this.#leaveDone) return;
    for (const { manager } of this.#singletons.values()) {
      if (manager.state.phase.kind !== 'ended' || manager.releasing) return;
    }
    const done = this.#leaveDone;
    this.#leaveDone = undefined;
    done();
  }

  /** This node is out of the cluster. */
  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const { manager, proxy } of this.#singletons.values()) {
      if (hasInstance(manager.state.phase)) manager.feed({ kind: 'self-down', why: 'removed from the cluster' });
      proxy.end();
    }
  }

  /** True while any instance exists on this node. */
  get hostsAnything(): boolean {
    return [...this.#singletons.values()].some(({ manager }) => hasInstance(manager.state.phase));
  }

  /** A lease is being given back. */
  get releasesLeases(): boolean {
    return [...this.#singletons.values()].some(({ manager }) => manager.releasing);
  }

  /** Ends every instance without waiting for user code. */
  killAll(): void {
    for (const { manager } of this.#singletons.values()) manager.dispose();
  }

  /** The member that hosts `name` in this node's view. */
  hostOf(name: string): string | undefined {
    return hostOf(this.#node.view(), name)?.address;
  }
}

function sameEntries<V>(a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (b.get(key) !== value) return false;
  return true;
}
