/** The singletons of one node in one cluster membership: routing of messages about them, and what the node publishes. */
import { LineBudget } from '../actor/line_budget.ts';
import type { Cancel } from '../actor/environment.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { KindOption } from '../cluster/cluster_options.ts';
import type { MemberChange, MembershipNode } from '../cluster/contract.ts';
import type { HostingClaim, StartedRecord } from '../cluster/member.ts';
import { textOf, WireError } from '../cluster/wire_checks.ts';
import type { Lease } from '../coordination/lease.ts';
import { limits } from '../limits.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { defaultManagerConfig, hasInstance } from './manager.ts';
import type { ManagerConfig } from './manager_state.ts';
import type { OutsideAnswers } from './outside.ts';
import { Singleton } from './singleton.ts';
import { messageCodes, questionCodes } from './messages.ts';
import { checkMadeLease, type ResolvedStart } from './start_options.ts';

/** A call that the present state does not allow. */
export class SingletonStateError extends Error {
  override readonly name = 'SingletonStateError';
}

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
  /** How answers reach senders that are no members. */
  readonly outside?: OutsideAnswers;
}

export interface SingletonSetPort {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  readonly options: RegistryOptions;
  /** What this node's record says beside the singletons it has started. */
  readonly marks: () => ReadonlyMap<string, StartedRecord>;
  /** Whoever holds a ref of `name` means this one. */
  readonly current: (name: string) => Singleton;
  /** After a change of the view, before the singletons look at it. */
  readonly onView: () => void;
}

/** How often a leaving node looks whether its messages have been acknowledged. */
const leaveLookMs = 5;

export class SingletonSet {
  readonly #port: SingletonSetPort;
  readonly #singletons = new Map<string, Singleton>();
  #started: ReadonlyMap<string, StartedRecord> = new Map();
  #hosting: ReadonlyMap<string, HostingClaim> = new Map();
  #generation = 0;
  #leaveDone: (() => void) | undefined;
  #leaveBy = 0;
  #leaveLook: Cancel | undefined;
  /** `suspended`: out of the cluster, and about to join again. */
  #batching = false;
  readonly #lines: LineBudget;
  #publishBooked = false;
  #state: 'in' | 'suspended' | 'out' = 'in';
  /** Messages about singletons that were not well-formed. */
  malformed = 0;

  /** With `before`, refs and what their senders have buffered go on, and what was started is started again. */
  constructor(port: SingletonSetPort, before?: SingletonSet) {
    this.#port = port;
    const { node } = port;
    this.#lines = new LineBudget(node.environment);
    for (const code of messageCodes) {
      node.onMessage(code, (peer, envelope, bytes) => this.#onMessage(peer, envelope, bytes));
    }
    node.onChange((_view, changes) => this.#onChange(changes));
    node.onSelfDown(({ why }) => this.#feedAll({ kind: 'self-down', why }));
    node.onLeaving((done) => this.#onLeaving(done));
    if (before) this.#generation = before.#generation;
    for (const singleton of before?.all() ?? []) this.#create(singleton.name, singleton);
  }

  get out(): boolean {
    return this.#state === 'out';
  }

  all(): Iterable<Singleton> {
    return this.#singletons.values();
  }

  find(name: string): Singleton | undefined {
    return this.#singletons.get(name);
  }

  /** @throws SingletonStateError at the bound */
  get(name: string): Singleton {
    return this.#singletons.get(name) ?? this.#create(name);
  }

  #create(name: string, before?: Singleton): Singleton {
    if (this.#singletons.size >= limits.singletons) {
      throw new SingletonStateError(`this node knows ${limits.singletons} singletons already`);
    }
    const { system, node, current } = this.#port;
    const singleton = new Singleton(name, {
      system,
      node,
      current: () => current(name),
      changed: () => this.#changed(),
      leaveDone: () => this.#checkLeave(),
      outside: this.#port.options.outside,
    }, before);
    this.#singletons.set(name, singleton);
    if (this.#state === 'out') singleton.proxy.end();
    return singleton;
  }

  begin(singleton: Singleton, start: ResolvedStart<any>, lease: Lease | undefined = this.leaseOf(start)): void {
    const { manager, proxy } = singleton;
    manager.useLease(lease, start.acquireRetryIntervalMs);
    manager.start = start;
    proxy.configure(start);
    this.#generation += 1;
    const spread = start.placement === 'spread' ? { placement: start.placement } : {};
    const record: StartedRecord = { generation: this.#generation, role: start.role, ...spread };
    manager.feed({ kind: 'start', record, config: this.#config(start) });
    this.publish();
    // The capability is published by now; the view that has it decides who hosts.
    manager.feed({ kind: 'view' });
    proxy.retarget();
  }

  #config(start: ResolvedStart<any>): ManagerConfig {
    return {
      ...defaultManagerConfig,
      handOverTimeoutMs: start.handOverTimeoutMs ?? this.#port.options.handOverTimeoutMs,
      handOverPolicy: start.handOverPolicy,
      restartOnTermination: start.restartOnTermination,
      moveAfterFailures: start.moveAfterFailures,
      stopTimeoutMs: start.stopTimeoutMs,
      lease: start.lease !== undefined,
      acquireRetryIntervalMs: start.acquireRetryIntervalMs,
    };
  }

  leaseOf({ lease, typeName }: ResolvedStart<any>): Lease | undefined {
    if (typeof lease !== 'function') return lease;
    const { address, uid, environment } = this.#port.node;
    const { driftBound, arbiter } = this.#port.options;
    const owner = `${address}#${uid}`;
    return checkMadeLease(lease({ name: typeName, owner, environment, driftBound, arbiter }), uid);
  }

  /** Tells the cluster what this node has started and hosts, whenever either has changed. */
  publish(): void {
    if (this.#state !== 'in' || this.#batching) return;
    const started = new Map<string, StartedRecord>(this.#port.marks());
    const hosting = new Map<string, HostingClaim>();
    for (const { name, manager } of this.#singletons.values()) {
      if (manager.state.started && !manager.state.withdrawn) started.set(name, manager.state.started);
      if (manager.claim) hosting.set(name, manager.claim);
    }
    if (sameEntries(started, this.#started) && sameEntries(hosting, this.#hosting)) return;
    this.#started = started;
    this.#hosting = hosting;
    this.#port.node.publish({ started, hosting });
  }

  #onMessage(peer: PeerIdentity, envelope: Envelope, bytes: number): void {
    try {
      const name = textOf(envelope[1], limits.typeNameChars, 'singleton name');
      const known = this.#singletons.get(name);
      if (known) return known.onMessage(peer, envelope, bytes);
      // Questions are answered for names never heard of; nothing else about them concerns this node. Others cannot use up
      // the room for the names of this node itself.
      if (questionCodes.has(envelope[0])) {
        if (this.#singletons.size < limits.singletons / 2) this.#create(name).onMessage(peer, envelope, bytes);
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.malformed += 1;
      const more = this.#lines.take();
      if (more === undefined) return;
      const fields = { from: peer.address, code: envelope[0], why: error.message, ...more };
      this.#port.node.environment.log.warn('a malformed singleton message was dropped', fields);
    }
  }

  #onChange(changes: readonly MemberChange[]): void {
    for (const change of changes) {
      if (change.kind === 'self-removed') return change.rejoin === true ? this.#suspend() : this.end();
      if (change.kind !== 'member') continue;
      const { uid, status, terminated } = change.member;
      for (const singleton of this.#singletons.values()) {
        if (status === 'removed') singleton.onMemberGone(uid);
        else if (terminated) singleton.handOver.forget(uid);
      }
    }
    this.#batch(() => {
      this.#port.onView();
      for (const singleton of [...this.#singletons.values()]) singleton.onView();
    });
  }

  /** Many singletons change at once: one publication for all. No instance has handled anything before it. */
  #batch(run: () => void): void {
    if (this.#batching) return run();
    this.#batching = true;
    try {
      run();
    } finally {
      this.#batching = false;
    }
    this.publish();
  }

  /** Soon, once for all changes of this turn; at once when a first instance needs the gate. */
  #changed(): void {
    if (this.#hosting.size === 0) return this.publish();
    if (this.#publishBooked || this.#batching) return;
    this.#publishBooked = true;
    this.#port.node.environment.turns.schedule(() => {
      this.#publishBooked = false;
      this.publish();
    });
  }

  #feedAll(event: { kind: 'self-down'; why: string } | { kind: 'leave' }): void {
    this.#batch(() => {
      for (const { manager } of [...this.#singletons.values()]) manager.feed(event);
    });
  }

  #onLeaving(done: () => void): void {
    this.#leaveDone = done;
    this.#leaveBy = this.#port.node.environment.clock.now() + limits.leaveAcknowledgeMs;
    this.#feedAll({ kind: 'leave' });
    this.#checkLeave();
  }

  #checkLeave(): void {
    if (!this.#leaveDone) return;
    for (const { manager } of this.#singletons.values()) {
      if (manager.state.phase.kind !== 'ended' || manager.releasing) return;
    }
    const { clock, timers } = this.#port.node.environment;
    // What this node has sent is acknowledged, if the hosts are quick about it, before it goes.
    if (clock.now() < this.#leaveBy && this.#awaitsAcknowledgements()) {
      if (this.#leaveLook === undefined) {
        this.#leaveLook = timers.set(leaveLookMs, () => {
          this.#leaveLook = undefined;
          this.#checkLeave();
        });
      }
      return;
    }
    const done = this.#leaveDone;
    this.#leaveDone = undefined;
    done();
  }

  #awaitsAcknowledgements(): boolean {
    return [...this.#singletons.values()].some(({ proxy: { stream } }) =>
      stream.target !== undefined && stream.buffered > 0
    );
  }

  /** Out of the cluster for now: instances stop, senders keep what they have. */
  #suspend(): void {
    if (this.#state !== 'in') return;
    this.#state = 'suspended';
    this.#stopAll();
    for (const { proxy } of this.#singletons.values()) proxy.suspend();
  }

  /** Out of the cluster for good: nothing is delivered any more. */
  end(): void {
    if (this.#state === 'out') return;
    this.#state = 'out';
    this.#stopAll();
    for (const { proxy } of this.#singletons.values()) proxy.end();
  }

  #stopAll(): void {
    for (const { manager } of this.#singletons.values()) {
      if (hasInstance(manager.state.phase)) manager.feed({ kind: 'self-down', why: 'removed from the cluster' });
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
}

function sameEntries<V>(a: ReadonlyMap<string, V>, b: ReadonlyMap<string, V>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (b.get(key) !== value) return false;
  return true;
}
