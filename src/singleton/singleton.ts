/** Everything one node has of one singleton: manager, proxy, ref, and the messages about it. */
import type { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import { codes } from '../wire/codes.ts';
import { crc32 } from '../wire/crc32.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { HostSide } from './host_side.ts';
import { ManagerShell } from './manager_shell.ts';
import type { Asker, ManagerState, Recipient, Verdict } from './manager_state.ts';
import {
  answerEnvelope,
  chunkEnvelope,
  readAcknowledge,
  readAnswer,
  readChunk,
  readOpen,
  readOpened,
  readRefuse,
  readRequest,
  readWithdraw,
  requestEnvelope,
  withdrawEnvelope,
} from './messages.ts';
import { SingletonProxy } from './proxy.ts';
import { SingletonRef } from './singleton_ref.ts';
import { chunksOf, StateAssembly } from './state_transfer.ts';

export interface SingletonPort {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  /** This singleton, after the node has become a new member perhaps another object. */
  current(): Singleton;
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
  readonly #side: HostSide;
  readonly #assemblies = new Map<string, StateAssembly>();
  readonly #brokenTransfers = new Map<string, number>();

  /** With `before`, the ref and what its senders have buffered are taken over. */
  constructor(name: string, port: SingletonPort, before?: Singleton) {
    this.name = name;
    this.#port = port;
    const { system, node } = port;
    this.manager = new ManagerShell(name, {
      system,
      node,
      sendRequest: (to, nonce, epoch) => this.#sendRequest(to, nonce, epoch),
      sendWithdraw: (to, nonce) => node.sendSystem(to.address, withdrawEnvelope(name, nonce), to.uid),
      sendAnswer: (to, verdict, state) => this.#sendAnswer(to, verdict, state),
      acknowledge: (stream, prefix, others) => this.#side.acknowledge(stream, prefix, others),
      wantsFlush: () => this.#side.bookFlush(),
      changed: () => port.changed(),
      hosting: () => this.#side.announce(),
      leaveDone: () => port.leaveDone(),
    }, before?.manager.state);
    this.#side = new HostSide({ name, node, host: this.manager.host, proxy: () => this.proxy });
    this.proxy = new SingletonProxy(
      {
        name,
        node,
        local: this.#side,
        deadLetter: (message, sender, reason, detail) =>
          system.deadLetters.publish({ message, sender, reason, detail, recipient: `singleton ${name}` }),
      },
      before?.proxy,
    );
    this.ref = before?.ref ?? new SingletonRef(name, {
      asks: system.asks,
      log: node.environment.log,
      tell: (message, sender) => port.current().proxy.tell(message, sender),
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
    this.#side.forget(uid);
    this.#assemblies.delete(uid);
    this.#brokenTransfers.delete(uid);
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
        return this.#side.onOpen(peer, readOpen(envelope));
      case codes.streamOpened:
        return this.proxy.onOpened(peer.uid, peer.address, readOpened(envelope));
      case codes.deliver:
        return this.#side.onDeliver(peer, envelope);
      case codes.acknowledge: {
        const { prefix, others } = readAcknowledge(envelope);
        return this.proxy.onAcknowledge(prefix, others);
      }
      case codes.refuse:
        return this.proxy.onRefuse(peer.uid, readRefuse(envelope));
    }
  }

  // Hand-over

  #sendRequest(to: Recipient, nonce: string, epoch: number): void {
    const { node } = this.#port;
    const assembly = this.#assemblies.get(to.uid);
    if (assembly?.nonce === nonce && node.environment.clock.now() - assembly.lastAt < chunkPatienceMs) return;
    node.sendSystem(to.address, requestEnvelope({ name: this.name, nonce, epoch }), to.uid);
  }

  #sendAnswer(to: Asker, verdict: Verdict, state: ManagerState): void {
    const { node } = this.#port;
    const result = verdict.kind === 'handed-over' ? verdict.result : undefined;
    const bytes = result?.state ?? null;
    if (bytes) {
      chunksOf(bytes).forEach((chunk, index) =>
        node.sendSystem(to.address, chunkEnvelope({ name: this.name, nonce: to.nonce, index, bytes: chunk }), to.uid)
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
      to.uid,
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
      const state = assembly?.nonce === answer.nonce
        ? assembly.finish(answer.stateBytes, answer.checksum)
        : 'incomplete';
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

  #warn(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#port.node.environment.log.warn(`singleton ${this.name}: ${message}`, fields);
  }
}
