/** The cluster as users see it: joining, looking, leaving, and the singletons. */
import type { Cancel } from '../actor/environment.ts';
import { SystemTerminatedError } from '../actor/errors.ts';
import { OptionsError } from '../actor/options.ts';
import type { ActorSystem } from '../actor/system.ts';
import { uid as newUid } from '../actor/real_environment.ts';
import type { Caller } from '../callers/caller.ts';
import type { ConnectOptions } from '../callers/caller_options.ts';
import { connect } from '../callers/connect.ts';
import type { ClusterOptions, ClusterSettings } from '../cluster/cluster_options.ts';
import { type Member, splitAddress } from '../cluster/member.ts';
import type { NodeEnd } from '../cluster/node.ts';
import { resolveClusterOptions, type ResolvedClusterOptions } from '../cluster/resolved_cluster_options.ts';
import { SingletonHandOver, SingletonHosted, SingletonHostedAnyway, SingletonStopped } from '../singleton/events.ts';
import type { SingletonRegistry } from '../singleton/registry.ts';
import type { Address } from '../transport/contract.ts';
import { checkSubscription, type ClusterEvent, eventsOf, replay, type SubscribeOptions } from './cluster_events.ts';
import { assemble, type Assembly } from './assembly.ts';
import { cancelFullShutdown, type FullShutdownOptions, prepareForFullShutdown } from './full_shutdown.ts';
import { ClusterStateError } from './state_error.ts';
import { watchProgress } from './join_progress.ts';
import { discovered, type DiscoveryOptions } from './discovery.ts';

export { ClusterStateError } from './state_error.ts';

/** How to follow and to end an attempt to join. */
export interface JoinControls {
  /** Ends the attempt to join. */
  readonly signal?: AbortSignal;
  /** Called once, as soon as this node listens: its address is known, and it does not have a cluster yet. */
  readonly onListening?: (cluster: Cluster) => void;
  /** Told what is missing, whenever it changes, until this node is up. */
  readonly onProgress?: (missing: string) => void;
}

/** Between two tries to listen again. */
const relistenMs = 1_000;

/**
 * This node's part in a cluster: who the members are, what happens to them, and the singletons. From `Cluster.join`,
 * `Cluster.bootstrap`, or `actor.cluster`.
 */
export class Cluster {
  /** Starts, finds and stops singletons. */
  readonly singleton: SingletonRegistry;
  readonly system: ActorSystem;
  /** Resolves when this node is out of the cluster for good. Never rejects. */
  readonly whenEnded: Promise<NodeEnd>;
  readonly #listeners = new Set<(event: ClusterEvent) => void>();
  #assembly: Assembly;
  #ended!: (end: NodeEnd) => void;
  #leaving = false;
  readonly #cancelShutdown: Cancel;
  #joined = false;

  private constructor(assembly: Assembly) {
    this.#assembly = assembly;
    this.system = assembly.system;
    this.singleton = assembly.registry;
    this.whenEnded = new Promise((resolve) => this.#ended = resolve);
    const { eventStream } = this.system;
    for (const type of [SingletonHosted, SingletonHandOver, SingletonStopped, SingletonHostedAnyway]) {
      eventStream.subscribe<SingletonHosted | SingletonHandOver | SingletonStopped | SingletonHostedAnyway>(
        type,
        (event) => this.#tell(event),
      );
    }
    this.#cancelShutdown = this.system.coordinatedShutdown.addTask(
      'cluster-leave',
      'leave the cluster for good',
      () => this.leave(),
    );
    this.#follow();
  }

  /**
   * Joins the cluster of the seeds, or forms one where the rules for a cold start allow it. Resolves once this node is `up`.
   * @throws OptionsError for a bad option, SystemTerminatedError, ListenError when the port cannot be had, JoinError when the
   * time is up
   */
  static async join(
    system: ActorSystem,
    options: ClusterOptions | ClusterSettings = {},
    controls: JoinControls = {},
  ): Promise<Cluster> {
    checkSystem(system);
    if (system.extensions.has('cluster')) {
      throw new ClusterStateError(`actor system ${system.name} is bound to a cluster already`);
    }
    const resolved = resolveClusterOptions(options, { systemName: system.name, log: system.log });
    system.extensions.set('cluster', undefined);
    try {
      const assembly = await assemble(system, resolved, uidOf(system));
      try {
        checkSystem(system);
      } catch (error) {
        await assembly.peers.stop();
        throw error;
      }
      const cluster = new Cluster(assembly);
      system.extensions.set('cluster', cluster);
      try {
        controls.onListening?.(cluster);
      } catch (error) {
        await assembly.peers.stop();
        throw error;
      }
      await cluster.#start(resolved, controls);
      cluster.#joined = true;
      return cluster;
    } catch (error) {
      system.extensions.delete('cluster');
      throw error;
    }
  }

  /**
   * Joins with the seeds that a lookup finds once they have stayed the same for a while. See `DiscoveryOptions`.
   * @throws what `join` throws, and BootstrapError when too few are found in time
   */
  static async bootstrap(
    system: ActorSystem,
    discovery: DiscoveryOptions,
    options: ClusterOptions | ClusterSettings = {},
    controls: JoinControls = {},
  ): Promise<Cluster> {
    checkSystem(system);
    return await Cluster.join(system, await discovered(system, discovery, options, controls.signal), controls);
  }

  /**
   * Reaches a cluster from outside: from a browser, a Worker or a script that cannot be dialled and does not become a member.
   * See `connect` in `singlet/connect`, which is this in a bundle without the rest of a node.
   */
  static connect(urls: string | readonly string[], options: ConnectOptions): Promise<Caller> {
    return connect(urls, options);
  }

  async #start(options: ResolvedClusterOptions, { signal, onProgress }: JoinControls): Promise<void> {
    const { node, peers } = this.#assembly;
    const progress = onProgress && watchProgress(node, onProgress);
    try {
      await node.join({ timeoutMs: options.joinTimeoutMs, ...(signal ? { signal } : {}) });
    } catch (error) {
      await peers.stop();
      throw error;
    } finally {
      progress?.();
    }
  }

  /** `host:port`, as other nodes dial it. */
  get address(): Address {
    return this.#assembly.node.address;
  }

  /** Random per process start. */
  get uid(): string {
    return this.#assembly.node.uid;
  }

  get name(): string {
    return this.#assembly.node.clusterName;
  }

  get selfMember(): Member {
    return this.#assembly.node.view().self;
  }

  /** Members that are not removed, oldest first. */
  getMembers(): readonly Member[] {
    return this.#assembly.node.view().members;
  }

  /** `up` members, oldest first. */
  upMembers(): readonly Member[] {
    return this.getMembers().filter((member) => member.status === 'up');
  }

  /** The oldest `up` member. */
  leader(): Member | undefined {
    return this.#assembly.node.view().leader;
  }

  isLeader(): boolean {
    return this.leader()?.uid === this.uid;
  }

  /** Why this node is not ready to serve; undefined when it is. */
  readiness(): string | undefined {
    return this.#assembly.node.readiness();
  }

  /** Answers a request like this node's port does. */
  fetch(request: Request): Response | Promise<Response> {
    return this.#assembly.fetch(request);
  }

  /**
   * Calls `listener` with what there is (inside this call) and then with every change. Events of singletons are those of
   * this node.
   */
  subscribe(listener: (event: ClusterEvent) => void, options: SubscribeOptions = {}): Cancel {
    checkSubscription(listener, options);
    for (const event of replay(this.#assembly.node.view(), options.replayMode ?? 'events')) this.#hand(listener, event);
    const subscriber = (event: ClusterEvent): void => this.#hand(listener, event);
    this.#listeners.add(subscriber);
    return () => void this.#listeners.delete(subscriber);
  }

  #hand(listener: (event: ClusterEvent) => void, event: ClusterEvent): void {
    try {
      listener(event);
    } catch (error) {
      this.system.log.error('a cluster subscriber failed', { event: event.kind, error });
    }
  }

  #tell(event: ClusterEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  /** Passes on what the present node reports, and joins again as a new one when it was put out. */
  #follow(): void {
    const { node, whenEnded } = this.#assembly;
    node.onChange((view, changes) => {
      for (const change of changes) for (const event of eventsOf(change, view)) this.#tell(event);
    });
    whenEnded.then((end) => {
      if (end.rejoin && this.#joined && this.#assembly.options.rejoin && !this.#leaving) return this.#rejoin(end);
      this.#finish(end);
    });
  }

  async #rejoin(end: NodeEnd): Promise<void> {
    const { system, options, node } = this.#assembly;
    system.log.warn('this node was put out of the cluster and joins again as a new member', { why: end.why });
    const [, port] = splitAddress(node.address);
    const bound = options.advertisedPort === undefined ? { ...options, port } : options;
    while (!this.#leaving) {
      try {
        this.#assembly = await assemble(system, bound, uidOf(system), { registry: this.singleton, end });
        this.#follow();
        return this.#leaving ? void this.#assembly.leave() : this.#assembly.node.start();
      } catch (error) {
        system.log.error('listening again failed', { error });
        await new Promise<void>((resolve) => void system.environment.timers.set(relistenMs, resolve));
      }
    }
    this.#finish(end);
  }

  /** Out for good; the actor system may join a cluster again. */
  #finish(end: NodeEnd): void {
    this.singleton.end();
    if (this.system.extensions.get('cluster') === this) this.system.extensions.delete('cluster');
    this.#cancelShutdown();
    this.#ended(end);
  }

  /**
   * Leaves: hands every singleton over, tells the others, and stops listening. Resolves when this node is out, after a
   * bounded time in any case. The actor system goes on.
   */
  async leave(): Promise<void> {
    this.#leaving = true;
    await this.#assembly.leave();
    await this.whenEnded;
  }

  /**
   * For the shutdown of the whole cluster: from now on no singleton starts on a member that is there now, so that nothing is
   * handed from node to node while they leave, in whatever order. Instances go on until their node leaves. Resolves once every
   * member knows. Members that join later are not meant: they host as ever.
   * @throws OptionsError; ClusterStateError that names who does not know yet when the time is up, or when this node is out
   */
  async prepareForFullShutdown(options: FullShutdownOptions = {}): Promise<void> {
    await prepareForFullShutdown(this.#assembly.node, options);
  }

  /** All of it back: singletons start and move again. False when no full shutdown was prepared. */
  cancelFullShutdown(): boolean {
    return cancelFullShutdown(this.#assembly.node);
  }

  /** Operator override: takes a member out. False when there is none there, or where a lease decides (`LeaseMajority`). */
  down(address: Address): boolean {
    return this.#assembly.node.down(address) === 'downed';
  }
}

/** Whoever joins after the shutdown has begun would never be asked to leave. */
function checkSystem(system: ActorSystem | undefined): void {
  // By what it has, so that a system of another copy of this package is one as well.
  if (typeof system?.spawnSystem !== 'function') {
    throw new OptionsError(
      'Cluster.join',
      'system',
      system,
      'must be an actor system, made by ActorSystem.create(name)',
    );
  }
  if (system.coordinatedShutdown.reason !== undefined || system.isTerminating) {
    throw new SystemTerminatedError(system.name, 'join a cluster');
  }
}

function uidOf({ environment }: ActorSystem): string {
  return environment.uid?.() ?? newUid();
}
