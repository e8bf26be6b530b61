/**
 * A node's part in serving callers that are connected anywhere: as the host of what they send to, as the way back to them,
 * and as the place where refs to them come to life. It never keeps a message: the caller has the only copy until the
 * host has acknowledged it, and what gets lost in between is sent again.
 */
import type { Cancel } from '../actor/environment.ts';
import { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { VirtualRefs } from '../cluster/remoting.ts';
import { WireError } from '../cluster/wire_checks.ts';
import { limits } from '../limits.ts';
import { hostOf } from '../singleton/host.ts';
import { singletonOfInstance } from '../singleton/instance.ts';
import { deliverEnvelope as singletonDelivery, openEnvelope } from '../singleton/messages.ts';
import { isCaller, outsideAddress, type OutsideAnswers, spoiled } from '../singleton/outside.ts';
import type { SingletonRegistry } from '../singleton/registry.ts';
import type { Singleton } from '../singleton/singleton.ts';
import { encodingFailure } from '../transport/envelope_pipe.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import { DecodeError, FrameError } from '../wire/errors.ts';
import { bodyCodec } from './bodies.ts';
import {
  CallerRef,
  callerRefName,
  type CallerRefOwner,
  callerScheme,
  type GatewayPlace,
  parseCallerRefName,
} from './caller_ref.ts';
import {
  answerEnvelope,
  type CallerStamp,
  deliverEnvelope,
  type HostStep,
  readAnswer,
  readDeliver,
  readReply,
  readToHost,
  replyEnvelope,
  toHostEnvelope,
  type Told,
} from './messages.ts';
import { CallerRoutes } from './routes.ts';

/** The callers that are connected to this node. */
export interface ConnectedCallers {
  /** False when this caller is not connected here. */
  answer(caller: string, host: string, envelope: Envelope): boolean;
  reply(caller: string, receiver: string, body: Uint8Array): boolean;
}

export interface DeskPort {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  readonly registry: () => SingletonRegistry;
}

/** For the metrics; all only grow. */
export interface DeskCounters {
  /** Messages of callers handed to singletons of this node, and those whose content did not decode. */
  delivered: number;
  spoiled: number;
  /** Answers to callers that could not be sent on. */
  lost: number;
  malformed: number;
}

/** How often forgotten callers are looked for. */
const sweepMs = limits.callerGraceMs / 10;

export class CallerDesk implements OutsideAnswers, CallerRefOwner {
  readonly counters: DeskCounters = { delivered: 0, spoiled: 0, lost: 0, malformed: 0 };
  readonly refs: VirtualRefs;
  readonly #port: DeskPort;
  readonly #routes = new CallerRoutes(limits.callersRemembered);
  readonly #here: GatewayPlace;
  #connected: ConnectedCallers | undefined;
  #sweep: Cancel | undefined;
  #ended = false;

  constructor(port: DeskPort) {
    this.#port = port;
    const { node } = port;
    this.#here = { uid: node.uid, address: node.address };
    node.onMessage(codes.callerToHost, (peer, envelope) =>
      this.#checked(peer, () => {
        const { stamp, step } = readToHost(envelope);
        this.#toHost(stamp, peer, step);
      }));
    node.onMessage(codes.callerDeliver, (peer, envelope) =>
      this.#checked(peer, () => {
        const { stamp, told } = readDeliver(envelope);
        this.#deliver(stamp, peer, told);
      }));
    node.onMessage(codes.callerAnswer, (peer, envelope) =>
      this.#checked(peer, () => {
        const { id, inner } = readAnswer(envelope);
        if (this.#connected?.answer(id, peer.uid, inner) !== true) this.counters.lost += 1;
      }));
    node.onMessage(codes.callerReply, (peer, envelope) =>
      this.#checked(peer, () => {
        const { id, receiver, body } = readReply(envelope);
        if (this.#connected?.reply(id, receiver, body) !== true) this.counters.lost += 1;
      }));
    this.refs = {
      scheme: callerScheme,
      nameOf: (ref) => ref instanceof CallerRef ? callerRefName(ref, this.#placeOf(ref)) : undefined,
      refFor: (name) => {
        const parsed = parseCallerRefName(name);
        return parsed && new CallerRef(parsed.caller, parsed.receiver, this, parsed.place);
      },
    };
  }

  attach(connected: ConnectedCallers): void {
    this.#connected = connected;
  }

  end(): void {
    this.#ended = true;
    this.#sweep?.();
    this.#sweep = undefined;
  }

  /** Callers whose way back is known. */
  get remembered(): number {
    return this.#routes.size;
  }

  // From the gateway of this node, for a host anywhere. False: that process is not a member, as far as this node knows.

  toHost(stamp: CallerStamp, host: string, step: HostStep): boolean {
    const { node } = this.#port;
    if (host === node.uid) return this.#toHost(stamp, this.#here, step), true;
    const address = this.#addressOf(host);
    if (address === undefined) return false;
    node.sendSystem(address, toHostEnvelope(stamp, step), host);
    return true;
  }

  /** What the links do not take is lost on the way: the host misses it, says so, and the caller sends it again. */
  deliver(stamp: CallerStamp, host: string, told: Told): boolean {
    const { node } = this.#port;
    if (host === node.uid) return this.#deliver(stamp, this.#here, told), true;
    const address = this.#addressOf(host);
    if (address === undefined) return false;
    node.sendUser(address, deliverEnvelope(stamp, told), host);
    return true;
  }

  #addressOf(uid: string): string | undefined {
    return this.#port.node.view().members.find((member) => member.uid === uid && member.status !== 'down')?.address;
  }

  // As the host.

  #toHost(stamp: CallerStamp, from: GatewayPlace, step: HostStep): void {
    if (!this.#heard(stamp, from)) return;
    const name = step.kind === 'open' ? step.start.name : step.name;
    switch (step.kind) {
      case 'attach':
        return;
      case 'open':
        return this.#singleton(name)?.fromOutside(this.#peer(stamp.id), openEnvelope(step.start), 0);
      case 'end':
        return this.#port.registry().find(name)?.onMemberGone(stamp.id);
      default:
        return step satisfies never;
    }
  }

  #deliver(stamp: CallerStamp, from: GatewayPlace, told: Told): void {
    if (!this.#heard(stamp, from)) return;
    const singleton = this.#singleton(told.name);
    if (singleton === undefined) return;
    const sender = told.receiver === null ? undefined : new CallerRef(stamp.id, told.receiver, this);
    const message = this.#decoded(stamp.id, told);
    if (message !== spoiled) this.counters.delivered += 1;
    const { name, epoch, seq, repeat } = told;
    const delivery = singletonDelivery(name, epoch, seq, repeat, sender, message);
    singleton.fromOutside(this.#peer(stamp.id), delivery, told.body.length);
  }

  #decoded(caller: string, { name, body }: Told): unknown {
    try {
      return this.#codec(caller).decode(body);
    } catch (error) {
      if (!(error instanceof DecodeError) && !(error instanceof FrameError)) throw error;
      this.counters.spoiled += 1;
      this.#port.system.deadLetters.publish({
        message: body,
        sender: undefined,
        recipient: `singleton ${name}`,
        reason: 'unserializable',
        detail: `from ${caller}: ${error.message}`,
      });
      return spoiled;
    }
  }

  #codec(caller: string) {
    return bodyCodec({
      receiverOf: (ref) => ref instanceof CallerRef && ref.caller === caller ? ref.receiver : undefined,
      receiver: (name) => new CallerRef(caller, name, this),
      singletonOf: (ref) => singletonOfInstance(ref.path),
    });
  }

  /** Callers make no node know a name that no member has started. */
  #singleton(name: string): Singleton | undefined {
    const { registry, node } = this.#port;
    const known = registry().find(name);
    if (known !== undefined || hostOf(node.view(), name)?.uid !== node.uid) return known;
    registry().ref(name);
    return registry().find(name);
  }

  #peer(id: string): PeerIdentity {
    return {
      address: outsideAddress,
      uid: id,
      clusterName: this.#port.node.clusterName,
      roles: [],
      runtime: 'caller',
    };
  }

  #heard(stamp: CallerStamp, { uid, address }: GatewayPlace): boolean {
    this.#armSweep();
    return this.#routes.heard(stamp, { uid, address }, this.#port.node.environment.clock.now());
  }

  // The way back.

  answer(caller: string, envelope: Envelope): void {
    const { node } = this.#port;
    this.#armSweep();
    const place = this.#routes.find(caller)?.place;
    if (place?.uid === node.uid) {
      if (this.#connected?.answer(caller, node.uid, envelope) !== true) this.counters.lost += 1;
    } else if (place !== undefined) {
      node.sendSystem(place.address, answerEnvelope(caller, envelope), place.uid);
    }
  }

  reply(ref: CallerRef, message: unknown, sender: ActorRef<any> | undefined): void {
    const { system, node } = this.#port;
    const lose = (reason: string, detail: string) => {
      this.counters.lost += 1;
      system.deadLetters.publish({ message, sender, recipient: ref.path, reason, detail });
    };
    let body: Uint8Array;
    try {
      body = this.#codec(ref.caller).encode(message);
    } catch (error) {
      const { reason, detail } = encodingFailure(error);
      system.log.error(`an answer to ${ref.path} cannot be sent: ${detail}`, { reason });
      return lose(reason, detail);
    }
    if (this.#connected?.reply(ref.caller, ref.receiver, body) === true) return;
    const place = this.#placeOf(ref);
    if (place === undefined || place.uid === node.uid) return lose('unreachable', 'the caller is not connected');
    const failure = node.sendUser(place.address, replyEnvelope(ref.caller, ref.receiver, body), place.uid);
    if (failure !== undefined) lose('unreachable', failure.detail);
  }

  #placeOf(ref: CallerRef): GatewayPlace | undefined {
    return this.#routes.find(ref.caller)?.place ?? ref.hint;
  }

  /** A caller that is not heard of for the time of grace is forgotten, with what its messages were filtered by. */
  #armSweep(): void {
    if (this.#sweep !== undefined || this.#ended) return;
    this.#sweep = this.#port.node.environment.timers.set(sweepMs, () => {
      this.#sweep = undefined;
      if (this.#forgetSilent()) this.#armSweep();
    });
  }

  /** True while there is anybody to remember. */
  #forgetSilent(): boolean {
    const now = this.#port.node.environment.clock.now();
    let remembered = false;
    for (const singleton of this.#port.registry().all()) {
      for (const stream of [...singleton.manager.host.streams()]) {
        if (!isCaller(stream)) continue;
        if (this.#routes.remember(stream, now).heardAt > now - limits.callerGraceMs) remembered = true;
        else singleton.onMemberGone(stream);
      }
    }
    this.#routes.expire(now - limits.callerGraceMs);
    return remembered || this.#routes.size > 0;
  }

  #checked(peer: PeerIdentity, run: () => void): void {
    try {
      run();
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.counters.malformed += 1;
      this.#port.system.log.warn('a malformed message about a caller was dropped', {
        from: peer.address,
        why: error.message,
      });
    }
  }
}
