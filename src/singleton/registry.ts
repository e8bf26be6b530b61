/** `cluster.singleton`: starting, finding, moving, spawning and stopping singletons. */
import type { Actor, ActorOrFactory } from '../actor/actor.ts';
import type { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import { anyRetires, retires } from '../cluster/full_shutdown.ts';
import { checkLeaseOwner, type Lease } from '../coordination/lease.ts';
import { noRoomFor } from '../cluster/state_size.ts';
import {
  eligibleHosts,
  freshPlace,
  hostOf,
  pinKey,
  pinnedUid,
  placedUid,
  placeKey,
  placementOf,
  roleOf,
} from './host.ts';
import { managerPath } from './instance.ts';
import type { SingletonKey } from './key.ts';
import type { KindName } from './kinds.ts';
import { hasInstance } from './manager.ts';
import { ManagerActor } from './manager_actor.ts';
import { type SimpleSingletonClass, type SingletonClass, type SingletonName, startSettings } from './naming.ts';
import { hostingProblem } from './problem.ts';
import type { Singleton } from './singleton.ts';
import { nameOf } from './singleton_name.ts';
import { type RegistryOptions, SingletonSet, SingletonStateError } from './singleton_set.ts';
import { type SpawnCallOptions, SpawnDesk, type SpawnSingletonOptions } from './spawn.ts';
import { differing, type ResolvedStart, resolveStart, type StartOptionsInput } from './start_options.ts';

export { type RegistryOptions, SingletonStateError } from './singleton_set.ts';

const shutDown = 'the whole cluster is about to be shut down';

/** `cluster.singleton`: starts, finds, moves and stops singletons. */
export class SingletonRegistry {
  readonly #system: ActorSystem;
  #node: MembershipNode;
  #options: RegistryOptions;
  #set: SingletonSet;
  #spawns: SpawnDesk;
  /** By the options that count: fields of later ones that were said to be ignored. */
  readonly #ignored = new WeakMap<ResolvedStart<any>, ReadonlySet<string>>();

  constructor(system: ActorSystem, node: MembershipNode, options: RegistryOptions) {
    this.#system = system;
    this.#node = node;
    this.#options = options;
    this.#spawns = this.#desk();
    this.#set = this.#bind(undefined);
    this.#set.publish();
  }

  /**
   * The process has become a new member, after this one was removed against its will: refs and buffers go on, and what was
   * started is started again. What was on its way to a host is settled first: nobody knows what became of it.
   */
  rebind(node: MembershipNode, options: RegistryOptions): void {
    const before = this.#set;
    this.#node = node;
    this.#options = options;
    const spawns = this.#spawns;
    this.#spawns = this.#desk();
    this.#set = this.#bind(before);
    for (const { name, manager: { start } } of before.all()) {
      if (start && !spawns.runs(name)) this.#set.begin(this.#set.get(name), start);
      else if (start) this.#stopManager(name);
    }
    this.#set.publish();
  }

  #desk(): SpawnDesk {
    return new SpawnDesk({
      system: this.#system,
      node: this.#node,
      kinds: this.#options.kinds ?? [],
      start: (settings) => void this.#start(resolveStart(settings)),
      stop: (name) => this.stop(name),
      isStarted: (name) => this.isStarted(name),
      ref: (name) => this.ref(name),
      ended: () => this.#set.out,
      desk: () => this.#spawns,
    });
  }

  #bind(before: SingletonSet | undefined): SingletonSet {
    const desk = this.#spawns;
    return new SingletonSet({
      system: this.#system,
      node: this.#node,
      options: this.#options,
      marks: () => desk.marks,
      current: (name) => this.#set.get(name),
      onView: () => desk.reconcile(),
    }, before);
  }

  /**
   * Starts the singleton named by the class. Get-or-create: a second start returns the same ref.
   * @throws SingletonStateError when this node has left, the singleton is still stopping here, or the state of the cluster has
   * no room for one more (`limits.stateBytes`); OptionsError
   */
  start<T>(type: SimpleSingletonClass<T>): ActorRef<T>;
  start<T>(type: SimpleSingletonClass<T>, options: StartOptionsInput<T>): ActorRef<T>;
  start<T>(type: SingletonClass<T>, factory: () => Actor<T>, options?: StartOptionsInput<T>): ActorRef<T>;
  start<T>(key: SingletonKey<T>, actor: ActorOrFactory<T>, options?: StartOptionsInput<T>): ActorRef<T>;
  start<T>(options: StartOptionsInput<T>): ActorRef<T>;
  start(first: any, second?: any, third?: any): ActorRef<any> {
    const start = resolveStart(startSettings(first, second, third));
    const full = this.isStarted(start.typeName) ? undefined : noRoomFor(start.typeName, this.#node.view().members);
    if (full !== undefined) throw new SingletonStateError(`singleton ${start.typeName} cannot be started: ${full}`);
    return this.#start(start);
  }

  /** The ref of a singleton, whether or not this node started it. Never makes this node a host. */
  ref<T>(name: SingletonName<T>): ActorRef<T> {
    return this.#set.get(nameOf(name)).ref;
  }

  /** Takes this node out of the running; an instance here stops, and another node that started it takes over. */
  stop(name: SingletonName<any>): void {
    const singleton = this.#set.find(nameOf(name));
    if (!singleton?.manager.start) return;
    singleton.manager.start = undefined;
    singleton.manager.feed({ kind: 'stop' });
    this.#stopManager(singleton.name);
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

  /**
   * Removes a spawned singleton from the cluster: it stops everywhere, and its name, kind and role are free again. Resolves
   * once a majority knows; with false when there is none of that name.
   * @throws SpawnError; OptionsError for a bad name or option
   */
  despawn(name: string, options: SpawnCallOptions = {}): Promise<boolean> {
    return this.#spawns.despawn(name, options);
  }

  isStarted(name: SingletonName<any>): boolean {
    return this.#set.find(nameOf(name))?.manager.start !== undefined;
  }

  /** The manager of a started singleton; undefined once it is stopped. */
  managerFor(name: SingletonName<any>): ActorRef<unknown> | undefined {
    if (!this.isStarted(name)) return undefined;
    return this.#system.resolve('/system/' + managerPath(nameOf(name)).join('/'));
  }

  /**
   * Hands the singleton over to the member at `address`, or to the next one that may host it, and keeps it there until that
   * member leaves. Of moves that two nodes are asked for before they have heard of each other's, one wins everywhere.
   * @throws SingletonStateError when nobody suitable is there, nobody has started it, or this node has left the cluster
   */
  move(name: SingletonName<any>, address?: string): void {
    const typeName = nameOf(name);
    if (this.#set.out) throw new SingletonStateError('this node has left the cluster');
    const view = this.#node.view();
    const candidates = eligibleHosts(view, typeName);
    const nobody = candidates.length === 0 ? hostingProblem(view, typeName, undefined) : undefined;
    if (nobody !== undefined) throw new SingletonStateError(`singleton ${typeName} cannot be moved: ${nobody}`);
    const target = address === undefined ? candidates[1] : candidates.find((member) => member.address === address);
    if (!target) {
      const who = address === undefined ? 'no other member' : `no eligible member at ${address}`;
      throw new SingletonStateError(`singleton ${typeName}: ${who} could host it`);
    }
    if (retires(view, target)) throw new SingletonStateError(`singleton ${typeName} cannot be moved: ${shutDown}`);
    // Said again, it would be newer than what another operator has said meanwhile.
    if (pinnedUid(view, typeName) !== target.uid) this.#node.writeEntry(pinKey(typeName), target.uid);
  }

  /**
   * Puts every spread singleton where it would be if all of them were started now, for the first time, on the members there
   * are: for after a scale-up, which moves nothing by itself. Each move is an ordinary hand-over; what `move` has pinned
   * stays. Returns the names that move, each with the address of its next host.
   * @throws SingletonStateError when this node has left the cluster, or the whole cluster is about to be shut down
   */
  rebalance(): ReadonlyMap<string, string> {
    if (this.#set.out) throw new SingletonStateError('this node has left the cluster');
    if (anyRetires(this.#node.view())) throw new SingletonStateError(`nothing is rebalanced: ${shutDown}`);
    const view = this.#node.view();
    const names = new Set(view.members.flatMap(({ started }) => [...started.keys()]));
    const moves = new Map<string, string>();
    for (const name of names) {
      const fresh = freshPlace(view, name);
      if (fresh === undefined || placedUid(view, name) === fresh.uid) continue;
      this.#node.writeEntry(placeKey(name), fresh.uid);
      moves.set(name, fresh.address);
    }
    return moves;
  }

  /** Every singleton this node knows of, for inspection. */
  all(): Iterable<Singleton> {
    return this.#set.all();
  }

  find(name: string): Singleton | undefined {
    return this.#set.find(name);
  }

  #start(start: ResolvedStart<any>): ActorRef<any> {
    if (this.#set.out) throw new SingletonStateError('this node has left the cluster');
    if (start.handOverTimeoutMs !== undefined) {
      this.#options.checkHandOverTimeout('StartSingletonOptions', 'handOverTimeoutMs', start.handOverTimeoutMs);
    }
    if (typeof start.lease === 'object') checkLeaseOwner('StartSingletonOptions', start.lease, this.#node.uid);
    const singleton = this.#set.get(start.typeName);
    const { manager } = singleton;
    if (manager.start) {
      this.#warnOfLater(manager.start, start);
      return singleton.ref;
    }
    const path = '/system/' + managerPath(start.typeName).join('/');
    if (hasInstance(manager.state.phase) || this.#system.resolve(path) !== undefined) {
      throw new SingletonStateError(
        `singleton ${start.typeName} is still stopping on this node; start it when it has stopped`,
      );
    }
    // Made first: where its factory throws, nothing has begun.
    const lease = this.#set.leaseOf(start);
    this.#warnOfOthers(start);
    if (lease !== undefined) this.#warnOfShared(start.typeName, lease);
    this.#system.spawnSystem(managerPath(start.typeName), () => new ManagerActor(), {});
    this.#set.begin(singleton, start, lease);
    return singleton.ref;
  }

  /** Once for each field. */
  #warnOfLater(first: ResolvedStart<any>, later: ResolvedStart<any>): void {
    const told = this.#ignored.get(first) ?? new Set<string>();
    const fields = differing(first, later).filter((field) => !told.has(field));
    if (fields.length === 0) return;
    this.#ignored.set(first, new Set([...told, ...fields]));
    this.#node.environment.log.warn(
      `singleton ${first.typeName} is started already: the later options are ignored, which differ in ${
        fields.join(', ')
      }`,
    );
  }

  /** A backend takes two leases of one name and owner for one. */
  #warnOfShared(typeName: string, { name }: Lease): void {
    const other = [...this.#set.all()].find(({ name: one, manager }) =>
      one !== typeName && manager.start !== undefined && manager.leaseName === name
    );
    if (other === undefined) return;
    this.#node.environment.log.warn(
      `singletons ${other.name} and ${typeName} have leases of one name, ${name}: in one backend each takes it from the other`,
    );
  }

  /** Role and placement are those of the oldest member that has started it. */
  #warnOfOthers({ typeName, role, placement }: ResolvedStart<any>): void {
    const view = this.#node.view();
    if (!view.members.some((member) => member.started.has(typeName))) return;
    const others = [
      ['role', role ?? 'none', roleOf(view, typeName) ?? 'none'],
      ['placement', placement, placementOf(view, typeName)],
    ].filter(([, own, counts]) => own !== counts);
    for (const [what, own, counts] of others) {
      this.#node.environment.log.warn(
        `singleton ${typeName}: started with ${what} ${own}, but its oldest starter says ${counts}, which counts`,
      );
    }
  }

  #stopManager(name: string): void {
    this.#system.resolve('/system/' + managerPath(name).join('/'))?.stop();
  }

  /** Messages about singletons that were not well-formed. */
  get malformed(): number {
    return this.#set.malformed;
  }

  /** True while any instance exists on this node. */
  get hostsAnything(): boolean {
    return this.#set.hostsAnything;
  }

  /** A lease is being given back. */
  get releasesLeases(): boolean {
    return this.#set.releasesLeases;
  }

  /** Ends every instance without waiting for user code. */
  killAll(): void {
    this.#set.killAll();
  }

  /** This process will not join again: what senders still keep becomes dead letters. */
  end(): void {
    this.#set.end();
    for (const { name, manager } of this.#set.all()) if (manager.start) this.#stopManager(name);
  }

  /** The member that hosts `name` in this node's view. */
  hostOf(name: string): string | undefined {
    return hostOf(this.#node.view(), name)?.address;
  }
}
