/** Everything one node has of one singleton: manager, proxy, ref, and the messages about it. */
import type { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import { codes } from '../wire/codes.ts';
import { crc32 } from '../wire/crc32.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import type { OpenOutcome } from './delivery_host.ts';
import { hostOf } from './host.ts';
import type { Sender } from './in_flight.ts';
import { ManagerShell } from './manager_shell.ts';
import type { ManagerState, Verdict } from './manager_state.ts';
import {
  acknowledgeEnvelope,
  answerEnvelope,
  chunkEnvelope,
  openedEnvelope,
  type OpenMessage,
  readAcknowledge,
  readAnswer,
  readChunk,
  readOpen,
  readOpened,
  readRefuse,
  readRequest,
  readWithdraw,
  refuseEnvelope,
  requestEnvelope,
  withdrawEnvelope,
} from './messages.ts';
import { SingletonProxy } from './proxy.ts';
import { SingletonRef } from './singleton_ref.ts';
import { chunksOf, StateAssembly } from './state_transfer.ts';
import { countOf } from '../cluster/wire_checks.ts';

export interface SingletonPort {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  changed(): void;
  leaveDone(): void;
}

/** Requests to a peer that is sending state are held back while its chunks keep coming. */
const chunkPatienceMs = 1_000;
/** Broken transfers after which the hand-over goes on without the state. */
const transferTries = 4;

export class Singleton {
  readonly name: string;
  readonly manager: ManagerShell;
  readonly proxy: SingletonProxy;
  readonly ref: ActorRef<any>;
  readonly #port: SingletonPort;
  /** Senders that asked to open while this node was becoming host. */
  readonly #waiting = new Map<string, OpenMessage>();
  readonly #assemblies = new Map<string, StateAssembly>();
  readonly #brokenTransfers = new Map<string, number>();
  /** By peer: the stale epoch it was refused for last, so that a burst of deliveries is refused once. */
  readonly #refused = new Map<string, number>();
  #flushBooked = false;

  constructor(name: string, port: SingletonPort) {
    this.name = name;
    this.#port = port;
    const { system, node } = port;
    this.manager = new ManagerShell(name, {
      system,
      node,
      sendRequest: (to, nonce, epoch) => this.#sendRequest(to, nonce, epoch),
      sendWithdraw: (to, nonce) => node.sendSystem(to, withdrawEnvelope(name, nonce)),
      sendAnswer: (to, verdict, state) => this.#sendAnswer(to, verdict, state),
      acknowledge: (stream, prefix, others) => this.#sendAcknowledge(stream, prefix, others),
      wantsFlush: () => this.#bookFlush(),
      changed: () => port.changed(),
      hosting: () => this.#announce(),
      leaveDone: () => port.leaveDone(),
    });
    this.proxy = new SingletonProxy(
      {
        name,
        node,
        local: {
          open: (stream, message) => this.#openHere(stream, message),
          offer: (stream, epoch, seq, message, sender) => this.#offerHere(stream, epoch, seq, message, sender),
        },
        deadLetter: (message, sender, reason, detail) =>
          system.deadLetters.publish({ message, sender, reason, detail, recipient: `singleton ${name}` }),
      },
      1_000,
      'drop-newest',
    );
    this.ref = new SingletonRef(name, {
      asks: system.asks,
      log: node.environment.log,
      tell: (message, sender) => this.proxy.tell(message, sender),
    });
  }

  onView(): void {
    this.manager.feed({ kind: 'view' });
    for (const member of this.#port.node.view().members) {
      const claim = member.hosting.get(this.name);
      if (claim && member.uid !== this.#port.node.uid && claim.epoch > this.manager.state.epochStarted) {
        this.manager.feed({ kind: 'hosted-elsewhere', uid: member.uid, epoch: claim.epoch });
      }
    }
    this.proxy.onView();
  }

  /** A member is gone for good: nothing of its streams or transfers is needed any more. */
  onMemberGone(uid: string): void {
    this.manager.host.forget(uid);
    this.#waiting.delete(uid);
    this.#assemblies.delete(uid);
    this.#brokenTransfers.delete(uid);
    this.#refused.delete(uid);
  }

  onMessage(peer: PeerIdentity, envelope: Envelope): void {
    switch (envelope[0]) {
      case codes.handOverRequest: {
        const { nonce, epoch } = readRequest(envelope);
        return this.manager.feed({ kind: 'request', asker: { uid: peer.uid, address: peer.address, nonce }, epoch });
      }
      case codes.handOverWithdraw:
        return this.manager.feed({ kind: 'withdrawn', uid: peer.uid, nonce: readWithdraw(envelope).nonce });
      case codes.handOverAnswer:
        return this.#onAnswer(peer, envelope);
      case codes.stateChunk:
        return this.#onChunk(peer, envelope);
      case codes.streamOpen:
        return this.#onOpen(peer, readOpen(envelope));
      case codes.streamOpened:
        return this.proxy.onOpened(peer.uid, peer.address, readOpened(envelope));
      case codes.deliver:
        return this.#onDeliver(peer, envelope);
      case codes.acknowledge: {
        const { prefix, others } = readAcknowledge(envelope);
        return this.proxy.onAcknowledge(prefix, others);
      }
      case codes.refuse:
        return this.proxy.onRefuse(peer.uid, readRefuse(envelope));
    }
  }

  // Hand-over

  #sendRequest(to: string, nonce: string, epoch: number): void {
    const { node } = this.#port;
    const uid = node.view().members.find((member) => member.address === to)?.uid ?? '';
    const assembly = this.#assemblies.get(uid);
    if (assembly?.nonce === nonce && node.environment.clock.now() - assembly.lastAt < chunkPatienceMs) return;
    node.sendSystem(to, requestEnvelope({ name: this.name, nonce, epoch }));
  }

  #sendAnswer(to: { address: string; nonce: string }, verdict: Verdict, state: ManagerState): void {
    const { node } = this.#port;
    const result = verdict.kind === 'handed-over' ? verdict.result : undefined;
    const bytes = result?.state ?? null;
    if (bytes) {
      chunksOf(bytes).forEach((chunk, index) =>
        node.sendSystem(to.address, chunkEnvelope({ name: this.name, nonce: to.nonce, index, bytes: chunk }))
      );
    }
    node.sendSystem(
      to.address,
      answerEnvelope({
        name: this.name,
        nonce: to.nonce,
        epochSeen: state.epochSeen,
        epochStarted: state.epochStarted,
        verdict,
        endedAgoMs: result ? Math.max(0, Math.round(node.environment.clock.now() - result.endedAt)) : 0,
        stateBytes: bytes ? bytes.length : -1,
        checksum: bytes ? crc32(bytes) : 0,
      }),
    );
  }

  #onChunk(peer: PeerIdentity, envelope: Envelope): void {
    const { nonce, index, bytes } = readChunk(envelope);
    const { phase } = this.manager.state;
    if (phase.kind !== 'becoming-host' || phase.attempt.nonce !== nonce) return;
    const now = this.#port.node.environment.clock.now();
    let assembly = this.#assemblies.get(peer.uid);
    if (assembly?.nonce !== nonce) {
      assembly = new StateAssembly(nonce, this.manager.start?.maxHandOverStateBytes ?? 0, now);
      this.#assemblies.set(peer.uid, assembly);
    }
    assembly.add(index, bytes, now);
  }

  #onAnswer(peer: PeerIdentity, envelope: Envelope): void {
    const answer = readAnswer(envelope, this.#port.node.environment.clock.now());
    let verdict = answer.verdict;
    if (verdict.kind === 'handed-over' && answer.stateBytes >= 0) {
      const assembly = this.#assemblies.get(peer.uid);
      const state = assembly?.nonce === answer.nonce ? assembly.finish(answer.stateBytes, answer.checksum) : 'incomplete';
      this.#assemblies.delete(peer.uid);
      if (typeof state === 'string') {
        const broken = (this.#brokenTransfers.get(peer.uid) ?? 0) + 1;
        this.#brokenTransfers.set(peer.uid, broken);
        if (state !== 'too-large' && broken < transferTries) return;
        this.#warn('the state handed over did not arrive whole: cold start', { why: state, from: peer.address });
      } else {
        verdict = { kind: 'handed-over', result: { ...verdict.result, state } };
      }
    }
    this.#brokenTransfers.delete(peer.uid);
    const { nonce, epochSeen } = answer;
    this.manager.feed({ kind: 'answer', uid: peer.uid, nonce, epochSeen, epochStarted: answer.epochStarted, verdict });
  }

  // Delivery, the host's side

  /** Tells every sender it knows, and those that wait, that they may send. */
  #announce(): void {
    const { host } = this.manager;
    const { node } = this.#port;
    const members = new Map(node.view().members.map((member) => [member.uid, member.address]));
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [uid, message] of waiting) {
      const address = members.get(uid);
      if (address !== undefined) this.#answerOpen(uid, address, message);
    }
    for (const uid of host.streams()) {
      const address = members.get(uid);
      if (address === undefined || waiting.some(([other]) => other === uid)) continue;
      const state = host.state(uid);
      if (state) this.#sendOpened(uid, address, { ...state, verdict: 'announced' });
    }
    this.proxy.retarget();
  }

  #sendOpened(uid: string, address: string, outcome: Omit<OpenOutcome, 'verdict'> & { verdict: OpenOutcome['verdict'] | 'announced' }): void {
    const { node } = this.#port;
    const { epoch, plannedSince } = this.manager.host;
    const message = { name: this.name, epoch, plannedSince, ...outcome };
    if (uid === node.uid) this.proxy.onOpened(uid, address, message);
    else node.sendSystem(address, openedEnvelope(message));
  }

  #answerOpen(uid: string, address: string, message: OpenMessage): void {
    const outcome = this.manager.host.open(uid, message);
    if (outcome) this.#sendOpened(uid, address, outcome);
    else this.#warn('too many sender streams: one more is refused', { from: address });
  }

  #openHere(stream: string, message: OpenMessage): (OpenOutcome & { epoch: number; plannedSince: number }) | undefined {
    const { host } = this.manager;
    if (host.epoch === 0) {
      this.#waiting.set(stream, message);
      return undefined;
    }
    const outcome = host.open(stream, message);
    return outcome && { ...outcome, epoch: host.epoch, plannedSince: host.plannedSince };
  }

  #offerHere(stream: string, epoch: number, seq: number, message: unknown, sender: Sender): boolean {
    const { host } = this.manager;
    if (host.epoch !== epoch || epoch === 0) return false;
    return host.offer(stream, seq, message, sender) !== 'gap';
  }

  #onOpen(peer: PeerIdentity, message: OpenMessage): void {
    if (this.manager.host.epoch > 0) return this.#answerOpen(peer.uid, peer.address, message);
    const { node } = this.#port;
    const host = hostOf(node.view(), this.name);
    if (host?.uid === node.uid) {
      this.#waiting.set(peer.uid, message);
      return;
    }
    this.#refuse(peer, 'not-host', host?.address);
  }

  #onDeliver(peer: PeerIdentity, envelope: Envelope): void {
    const { host } = this.manager;
    const epoch = countOf(envelope[2], 'epoch');
    const seq = countOf(envelope[3], 'sequence number');
    const sender = (envelope[5] ?? undefined) as Sender;
    if (host.epoch !== epoch) {
      const other = hostOf(this.#port.node.view(), this.name);
      if (this.#refused.get(peer.uid) === epoch) return;
      this.#refused.set(peer.uid, epoch);
      return this.#refuse(peer, host.epoch > 0 ? 'epoch' : 'not-host', other?.address);
    }
    if (host.offer(peer.uid, seq, envelope[6], sender) === 'gap') this.#refuse(peer, 'gap', undefined);
  }

  #refuse(peer: PeerIdentity, why: 'not-host' | 'epoch' | 'gap', hint: string | undefined): void {
    const { epoch } = this.manager.host;
    const { node } = this.#port;
    node.sendSystem(peer.address, refuseEnvelope({ name: this.name, epoch, why, hint: hint === node.address ? undefined : hint }));
  }

  #sendAcknowledge(stream: string, prefix: number, others: readonly number[]): void {
    const { node } = this.#port;
    if (stream === node.uid) return this.proxy.onAcknowledge(prefix, others);
    const address = node.view().members.find((member) => member.uid === stream)?.address;
    if (address !== undefined) node.sendSystem(address, acknowledgeEnvelope({ name: this.name, prefix, others }));
  }

  #bookFlush(): void {
    if (this.#flushBooked) return;
    this.#flushBooked = true;
    this.#port.node.environment.turns.schedule(() => {
      this.#flushBooked = false;
      this.manager.host.flush();
    });
  }

  #warn(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#port.node.environment.log.warn(`singleton ${this.name}: ${message}`, fields);
  }
}
