/**
 * A cluster node's shell: feeds the membership core one event at a time and carries out its effects. Everything is driven
 * by callbacks of the environment, the peers and the transport, so the simulator and production run the same code.
 */
import type { Cancel, Environment } from '../actor/environment.ts';
import { limits } from '../limits.ts';
import type { Address, SeedAnswer } from '../transport/contract.ts';
import type { Envelope, MessageCheck, Peers, PeersEvents, SendFailure, Sized } from '../transport/peers_contract.ts';
import type { DownOutcome, HostGate, MembershipNode, SelfDown } from './contract.ts';
import type { ClaimReport } from './claimant.ts';
import { DeathWatch } from './death_watch.ts';
import { performEffect } from './effects.ts';
import { GateKeeper } from './gate_keeper.ts';
import { Gossiper } from './gossiper.ts';
import { HealWatch } from './heal_watch.ts';
import { Heartbeats } from './heartbeats.ts';
import type { SeedReason } from './join_error.ts';
import { JoinProcess } from './join_process.ts';
import { LeaveProcess } from './leave_process.ts';
import type { HostingClaim, MembershipView, StartedRecord } from './member.ts';
import { createMembership, type Membership, type MembershipEffect, type MembershipEvent } from './membership_state.ts';
import { step } from './membership.ts';
import { initialRecord, type NodeContext, type NodeSettings, seedAnswerOf } from './node_context.ts';
import { Alarm } from './alarm.ts';
import { type ChangeListener, type NodeEnd, Notifier } from './notifier.ts';
import { type JoinOptions, waitUntilUp } from './wait_until_up.ts';
import { type MessageHandler, NodeInbox } from './node_inbox.ts';
import { Pulse } from './pulse.ts';
import { SplitWatch } from './split_watch.ts';
import { isActive } from './transitions.ts';
import { buildView, diffViews, sameView } from './view.ts';

export type { JoinOptions, NodeEnd };

export class ClusterNode implements MembershipNode, NodeContext {
  readonly settings: NodeSettings;
  readonly environment: Environment;
  readonly clusterName: string;
  readonly uid: string;
  readonly address: Address;
  readonly peers: Peers;
  readonly pulse: Pulse;
  readonly gate: HostGate;
  readonly #keeper: GateKeeper;
  readonly #heartbeats: Heartbeats;
  readonly #splits: SplitWatch;
  readonly #deaths: DeathWatch;
  readonly #heal: HealWatch;
  readonly #gossiper: Gossiper;
  readonly #joiner: JoinProcess;
  readonly #leaver: LeaveProcess;
  readonly #inbox: NodeInbox;
  readonly #wakes: Alarm;
  readonly #notifier: Notifier;
  #state: Membership;
  #view: MembershipView;
  #events: MembershipEvent[] = [];
  #busy = false;
  #settled: Membership | undefined;
  #joined = false;
  #end: NodeEnd | undefined;
  #counters = new Map<string, number>();

  constructor(settings: NodeSettings, peers: Peers) {
    this.settings = settings;
    this.environment = settings.environment;
    this.clusterName = settings.clusterName;
    this.uid = settings.uid;
    this.address = peers.address;
    this.peers = peers;
    this.pulse = new Pulse(this.environment);
    const { timing, minMembers = 1 } = settings;
    this.#state = createMembership(initialRecord(settings, peers.address), {
      marginMs: () => timing.removalMarginMs,
      minMembers,
    });
    this.#notifier = new Notifier(this.environment, () => this.#view);
    this.#keeper = new GateKeeper(this);
    this.gate = this.#keeper;
    this.#splits = new SplitWatch(this, this.#keeper);
    this.#deaths = new DeathWatch(this, (uid) => this.#keeper.mayHaveClaimed(uid));
    this.#heal = new HealWatch(this);
    this.#heartbeats = new Heartbeats(this, (pauseMs) => this.#paused(pauseMs));
    this.#gossiper = new Gossiper(this);
    this.#joiner = new JoinProcess(this);
    this.#leaver = new LeaveProcess(this);
    this.#wakes = new Alarm(this.environment, () => this.dispatch({ kind: 'tick' }));
    this.#inbox = new NodeInbox(this, {
      joiner: this.#joiner,
      heartbeats: this.#heartbeats,
      gate: this.#keeper,
      heal: this.#heal,
      deaths: this.#deaths,
      gossiper: this.#gossiper,
    });
    this.#view = buildView(this.#state, 0, new Map());
    this.#settled = this.#state;
  }

  /** What the peers report goes here. */
  get events(): PeersEvents {
    return this.#inbox;
  }

  membership(): Membership {
    return this.#state;
  }

  view(): MembershipView {
    return this.#view;
  }

  /** Set once this node has ended: it left, was removed, lost a split, or never got in. */
  ended(): NodeEnd | undefined {
    return this.#end;
  }

  /** Starts looking for the cluster. */
  start(): void {
    this.#joiner.start();
  }

  /**
   * Starts looking for the cluster and resolves once this node is `up`.
   * @throws JoinError on time-out, abort, or when the node ends before; it lists each seed and why it did not help.
   */
  join(options: JoinOptions = {}): Promise<void> {
    this.start();
    return waitUntilUp(this, options);
  }

  /** What this node answers to `GET /cluster/seed`. */
  seedAnswer(): SeedAnswer {
    return seedAnswerOf(this, this.#joiner.founds());
  }

  /** Why this node is not ready; undefined when it is. */
  readiness(): string | undefined {
    if (this.#end !== undefined) return this.#end.why;
    if (this.#state.phase === 'outside') return this.#joiner.missing();
    const { status } = this.#view.self;
    return status === 'up'
      ? undefined
      : status === 'joining'
      ? 'waiting for the leader to let this node become up'
      : `this node is ${status}`;
  }

  /** Of the lease that decides about splits; undefined where none does. */
  claim(): ClaimReport | undefined {
    return this.#splits.claim();
  }

  seedReasons(): readonly SeedReason[] {
    return this.#joiner.reasons();
  }

  counters(): ReadonlyMap<string, number> {
    return this.#counters;
  }

  onChange(listener: ChangeListener): Cancel {
    return this.#notifier.onChange(listener);
  }

  onSelfDown(listener: (down: SelfDown) => void): Cancel {
    return this.#notifier.onSelfDown(listener);
  }

  /** Called once, in the step that reports the last change, after it. */
  onEnd(listener: (end: NodeEnd) => void): Cancel {
    return this.#notifier.onEnd(listener);
  }

  publish(change: { started?: ReadonlyMap<string, StartedRecord>; hosting?: ReadonlyMap<string, HostingClaim> }): void {
    this.dispatch({ kind: 'publish', started: change.started, hosting: change.hosting });
  }

  /** @throws RangeError for an empty or over-long key. */
  writeEntry(key: string, value: unknown): void {
    if (key.length < 1 || key.length > limits.entryKeyChars) {
      throw new RangeError(`writeEntry: key must have 1 to ${limits.entryKeyChars} characters, got ${key.length}`);
    }
    this.dispatch({ kind: 'entry', key, value });
  }

  onMessage(code: number, handler: MessageHandler): Cancel {
    return this.#inbox.onMessage(code, handler);
  }

  sendSystem(address: Address, envelope: Envelope, uid?: string): void {
    this.peers.sendSystem(address, envelope, uid);
  }

  sendUser(address: Address, envelope: Envelope, uid?: string, sized?: Sized): SendFailure | undefined {
    return this.peers.sendUser(address, envelope, uid, sized);
  }

  beforeFlush(run: () => void): void {
    this.peers.beforeFlush(run);
  }

  get messages(): MessageCheck {
    return this.peers;
  }

  congested(address: Address): boolean {
    return this.peers.congested(address);
  }

  linked(address: Address, uid: string): boolean {
    return this.peers.connected(address)?.uid === uid;
  }

  onLeaving(task: (done: () => void) => void): Cancel {
    return this.#leaver.onLeaving(task);
  }

  leave(): Promise<void> {
    const left = new Promise<void>((resolve) => {
      if (this.#end !== undefined) resolve();
      else this.onEnd(() => resolve());
    });
    if (this.#end === undefined) this.#leaver.begin();
    return left;
  }

  down(address: Address): DownOutcome {
    const uids = [...this.#state.gossip.records.values()]
      .filter((record) => record.address === address && isActive(record.status))
      .map((record) => record.uid);
    if (uids.length === 0 || this.#state.phase !== 'member') return 'unknown';
    // Cut off from here, it would claim for a side of its own, and find that nobody else has.
    if (this.settings.strategy.arbiter !== undefined && address !== this.address) return 'refused';
    this.dispatch({ kind: 'down', uids, terminated: false, why: 'downed by an operator' });
    return 'downed';
  }

  send(to: Address, envelope: Envelope): void {
    this.peers.sendSystem(to, envelope);
  }

  count(name: string): void {
    this.#counters.set(name, (this.#counters.get(name) ?? 0) + 1);
  }

  dispatch(event: MembershipEvent): void {
    if (!this.#busy) this.#heartbeats.catchUp();
    this.#events.push(event);
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#events.length > 0 || this.#state !== this.#settled) {
        const next = this.#events.shift();
        if (next !== undefined) this.#apply(next);
        else this.#settle();
      }
    } finally {
      this.#busy = false;
    }
  }

  #apply(event: MembershipEvent): void {
    const { state, effects } = step(this.#state, event, this.environment.clock.now());
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
  }

  /** All events are handled: the parts of the shell look at the new state, and may cause more events. */
  #settle(): void {
    this.#settled = this.#state;
    this.#heartbeats.refresh();
    this.#refreshView();
    if (this.#state.phase !== 'member') return;
    if (!this.#joined) {
      this.#joined = true;
      this.#joiner.stop();
      this.#heartbeats.start();
      this.#gossiper.start();
      this.#heal.start();
    }
    this.#keeper.refresh();
    this.#splits.refresh();
  }

  #refreshView(): void {
    const view = buildView(this.#state, this.#view.revision + 1, this.#heartbeats.verdicts, this.#view);
    if (sameView(this.#view, view)) return;
    const changes = diffViews(this.#view, view);
    this.#view = view;
    this.#heal.changed(changes);
    this.#notifier.changed(changes);
  }

  #perform(effect: MembershipEffect): void {
    if (effect.kind === 'ended') this.#finish(effect, effect.selfDown);
    else if (effect.kind === 'wake') this.#wakes.at(effect.at);
    else performEffect(effect, this, { gossiper: this.#gossiper, inbox: this.#inbox, deaths: this.#deaths });
  }

  /** Self-down first and synchronously; then everybody who still listens to us hears our last state. */
  #finish({ why, rejoin, via }: Omit<NodeEnd, 'members'>, selfDown: boolean): void {
    this.#end = { why, rejoin, via, members: this.#view.members };
    this.#keeper.end();
    if (selfDown) this.#notifier.selfDown(why);
    this.#gossiper.flush();
    for (const part of [this.#joiner, this.#heartbeats, this.#splits, this.#deaths, this.#heal]) part.stop();
    for (const part of [this.#gossiper, this.#leaver, this.#wakes]) part.stop();
    this.environment.log.info('this node has ended', { why });
    this.#refreshView();
    this.#notifier.ended(this.#end);
  }

  #paused(pauseMs: number): void {
    this.environment.log.warn('this process stood still', { pauseMs: Math.round(pauseMs) });
    this.#splits.paused(pauseMs);
    this.#heal.paused(pauseMs);
  }
}
