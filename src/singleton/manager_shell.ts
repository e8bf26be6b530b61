/** Runs one manager: feeds it events one at a time, carries out its effects, owns its timers and its instance. */
import type { Cancel } from '../actor/environment.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { HostingClaim } from '../cluster/member.ts';
import type { Lease } from '../coordination/lease.ts';
import { DeliveryHost, type DeliveryHostPort } from './delivery_host.ts';
import { SingletonHandOver, SingletonHosted, SingletonHostedAnyway, SingletonStopped } from './events.ts';
import { placeKey } from './host.ts';
import { Instance } from './instance.ts';
import { LeaseKeeper, type LeaseReport } from './lease_keeper.ts';
import { initialManager, manage } from './manager.ts';
import type {
  Asker,
  HandOverReport,
  ManagerEffect,
  ManagerEvent,
  ManagerState,
  Recipient,
  TimerName,
  Verdict,
} from './manager_state.ts';
import type { ResolvedStart } from './start_options.ts';

export interface ManagerPort extends Omit<DeliveryHostPort, 'deliver'> {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  sendRequest(to: Recipient, nonce: string, epoch: number, via: Recipient | undefined): void;
  sendWithdraw(to: Recipient, nonce: string): void;
  sendAnswer(to: Asker, verdict: Verdict, state: ManagerState): void;
  /** The phase, the epoch or what is published may be different now. */
  changed(): void;
  /** An instance takes messages from now on: senders that wait may be answered. */
  hosting(): void;
  leaveDone(): void;
}

export interface LastHandOver extends HandOverReport {
  readonly epoch: number;
  readonly at: number;
}

export class ManagerShell {
  readonly name: string;
  readonly host: DeliveryHost;
  state: ManagerState;
  /** What this node was asked to start; undefined while it only holds a ref or answers questions. */
  start: ResolvedStart<any> | undefined;
  claim: HostingClaim | undefined;
  lastHandOver: LastHandOver | undefined;
  hostedAnyway = 0;
  readonly #port: ManagerPort;
  readonly #timers = new Map<TimerName, Cancel>();
  readonly #queue: ManagerEvent[] = [];
  #feeding = false;
  #instance: Instance | undefined;
  #keeper: LeaseKeeper | undefined;
  /** Of the start before, while its release is on its way. */
  #formerKeeper: LeaseKeeper | undefined;

  /** Epochs heard of in an earlier membership of this process stay known. */
  constructor(name: string, port: ManagerPort, before?: Pick<ManagerState, 'epochSeen' | 'epochStarted'>) {
    this.name = name;
    this.#port = port;
    const { epochSeen = 0, epochStarted = 0 } = before ?? {};
    this.state = { ...initialManager(name, port.node.uid, port.node.address), epochSeen, epochStarted };
    this.host = new DeliveryHost({
      deliver: (message, sender, receipt) => this.#instance?.deliver(message, sender, receipt),
      acknowledge: (stream, prefix, others) => port.acknowledge(stream, prefix, others),
      wantsFlush: () => port.wantsFlush(),
      resume: (stream) => port.resume(stream),
    });
  }

  /** The lease of the start that follows; undefined: none. */
  useLease(lease: Lease | undefined, acquireRetryIntervalMs: number): void {
    const former = this.#keeper;
    if (former?.releasing) this.#formerKeeper = former;
    else former?.dispose();
    this.#keeper = lease && new LeaseKeeper(this.name, lease, acquireRetryIntervalMs, {
      environment: this.#port.node.environment,
      feed: (event) => this.feed(event),
      released: () => this.#released(),
    });
  }

  get leaseName(): string | undefined {
    return this.#keeper?.lease.name;
  }

  leaseReport(): LeaseReport | undefined {
    return this.#keeper?.report();
  }

  /** Why this node, which should host, has not got the lease; undefined where that is not so. */
  get leaseProblem(): string | undefined {
    return this.state.phase.kind === 'acquiring-lease' ? this.#keeper?.report().problem : undefined;
  }

  /** A lease of this singleton is being given back. */
  get releasing(): boolean {
    return (this.#keeper?.releasing || this.#formerKeeper?.releasing) ?? false;
  }

  #released(): void {
    if (this.#formerKeeper?.releasing === false) {
      this.#formerKeeper.detach();
      this.#formerKeeper = undefined;
    }
    this.#port.leaveDone();
  }

  feed(event: ManagerEvent): void {
    this.#queue.push(event);
    if (this.#feeding) return;
    this.#feeding = true;
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#step(next);
    } finally {
      this.#feeding = false;
    }
    this.#port.changed();
  }

  #step(event: ManagerEvent): void {
    const { node } = this.#port;
    const { clock } = node.environment;
    const step = manage(this.state, event, node.view(), clock.now(), clock.wall());
    this.state = step.state;
    for (const effect of step.effects) this.#carryOut(effect);
  }

  #carryOut(effect: ManagerEffect): void {
    switch (effect.kind) {
      case 'request':
        return this.#port.sendRequest(effect.to, effect.nonce, effect.epoch, effect.via);
      case 'withdraw':
        return this.#port.sendWithdraw(effect.to, effect.nonce);
      case 'answer':
        return this.#port.sendAnswer(effect.to, effect.verdict, this.state);
      case 'start-instance':
        return this.#start(effect);
      case 'stop-instance':
        return this.#stop(effect.epoch, effect.collect);
      case 'kill-instance':
        if (this.#instance?.epoch === effect.epoch) this.#instance.kill();
        return;
      case 'take-place':
        return this.#port.node.writeEntry(placeKey(this.name), this.#port.node.uid);
      case 'set-timer':
        return this.#setTimer(effect.timer, effect.ms, effect.jitter);
      case 'clear-timer':
        this.#timers.get(effect.timer)?.();
        this.#timers.delete(effect.timer);
        return;
      case 'leave-done':
        return this.#port.leaveDone();
      case 'hosted-anyway':
        this.hostedAnyway += 1;
        return this.#publish(
          new SingletonHostedAnyway({ name: this.name, host: this.#port.node.address, silent: effect.silent }),
        );
      case 'log':
        return this.#port.node.environment.log[effect.level](
          `singleton ${this.name}: ${effect.message}`,
          effect.fields,
        );
      case 'acquire-lease':
        return this.#keeper?.acquire(effect.above);
      case 'release-lease':
        return this.#keeper?.release(effect.useless);
      default:
        return effect satisfies never;
    }
  }

  #setTimer(timer: TimerName, ms: number, jitter = 0): void {
    const { timers, random } = this.#port.node.environment;
    this.#timers.get(timer)?.();
    const delay = jitter === 0 ? ms : ms * (1 + jitter * random.next());
    const cancel = timers.set(delay, () => {
      if (this.#timers.get(timer) !== cancel) return;
      this.#timers.delete(timer);
      this.feed({ kind: 'timer', timer });
    });
    this.#timers.set(timer, cancel);
  }

  #start(effect: Extract<ManagerEffect, { kind: 'start-instance' }>): void {
    const { system, node } = this.#port;
    const { epoch, plannedSince, previous, report } = effect;
    const start = this.start;
    if (start === undefined) return;
    if (effect.keepFilter) this.host.beginAgain(epoch);
    else this.host.begin(epoch, plannedSince, previous?.watermarks ?? []);
    const { clock } = node.environment;
    this.claim = { epoch, plannedSince, since: Math.floor(clock.wall()) };
    this.lastHandOver = { ...report, epoch, at: clock.wall() };
    try {
      this.#instance = this.#spawn(system, start, epoch, previous?.state, coldReason(report));
    } catch (error) {
      node.environment.log.error(`singleton ${this.name}: the instance could not be spawned`, { error });
      return this.#ended(epoch, 'died', null);
    }
    const { reason, from } = report;
    const gapMs = report.gapMs === undefined ? undefined : Math.round(report.gapMs);
    node.environment.log.info(`singleton ${this.name}: this node hosts`, {
      from: from ?? null,
      to: node.address,
      reason,
      epoch,
      gapMs,
    });
    this.#publish(new SingletonHosted({ name: this.name, host: node.address, epoch, reason, from, gapMs }));
    if (reason === 'planned' || reason === 'crash') {
      this.#publish(new SingletonHandOver({ name: this.name, from, to: node.address, reason, gapMs, epoch }));
    }
    this.#port.changed();
    this.#port.hosting();
  }

  #spawn(
    system: ActorSystem,
    start: ResolvedStart<any>,
    epoch: number,
    warm: Uint8Array | null | undefined,
    cold: string | undefined,
  ): Instance {
    const { node } = this.#port;
    const keeper = this.#keeper;
    const tenure = keeper && { held: () => keeper.holds(epoch), mayBegin: () => keeper.mayBegin(epoch) };
    return new Instance(system, start, { epoch, gate: node.gate, warm, cold, tenure }, {
      started: () => this.feed({ kind: 'instance-started', epoch }),
      ended: (cause, state, killed) => {
        if (killed) this.host.interrupted(killed.returned);
        this.#ended(epoch, cause, state);
      },
      settled: (receipt, failed) => this.host.settled(receipt, failed),
      warn: (message, fields) => node.environment.log.warn(`singleton ${this.name}: ${message}`, fields),
    });
  }

  #stop(epoch: number, collect: boolean): void {
    if (this.#instance?.epoch === epoch) this.#instance.stop(collect);
    else this.#ended(epoch, 'planned', null);
  }

  #ended(epoch: number, cause: 'planned' | 'died', state: Uint8Array | null): void {
    if (this.#instance?.epoch === epoch) this.#instance = undefined;
    const watermarks = this.host.end();
    this.claim = undefined;
    this.#publish(new SingletonStopped({ name: this.name, host: this.#port.node.address, epoch, cause }));
    this.feed({ kind: 'instance-ended', epoch, cause, watermarks, state });
  }

  #publish(event: object): void {
    this.#port.system.eventStream.publish(event);
  }

  /** Drops timers; the instance, if any, is killed. */
  dispose(): void {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
    this.#instance?.kill();
    this.#keeper?.dispose();
  }
}

/** State is never taken from an instance that crashed or ended by itself. */
function coldReason({ reason }: HandOverReport): string | undefined {
  if (reason === 'crash') return 'the host before crashed';
  return reason === 'restart' ? 'the instance before ended by itself' : undefined;
}
