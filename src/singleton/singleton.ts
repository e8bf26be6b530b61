/** Everything one node has of one singleton: manager, proxy, ref, and the messages about it. */
import type { ActorRef } from '../actor/ref.ts';
import type { ActorSystem } from '../actor/system.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import { fail } from '../cluster/wire_checks.ts';
import { codes } from '../wire/codes.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { attempterOf } from './attempt_nonce.ts';
import { HandOverSide } from './hand_over_side.ts';
import { hostOf, roleOf } from './host.ts';
import { HostSide } from './host_side.ts';
import { ManagerShell } from './manager_shell.ts';
import {
  readAcknowledge,
  readOpen,
  readOpened,
  readRefuse,
  readRequest,
  readWithdraw,
  withdrawEnvelope,
} from './messages.ts';
import type { OutsideAnswers } from './outside.ts';
import { replyProblem } from './problem.ts';
import { Relay, type Speaker } from './relay.ts';
import { SingletonProxy } from './proxy.ts';
import { SingletonRef } from './singleton_ref.ts';

export interface SingletonPort {
  readonly system: ActorSystem;
  readonly node: MembershipNode;
  /** This singleton, after the node has become a new member perhaps another object. */
  current(): Singleton;
  changed(): void;
  leaveDone(): void;
  readonly outside: OutsideAnswers | undefined;
}

export class Singleton {
  readonly name: string;
  readonly manager: ManagerShell;
  readonly proxy: SingletonProxy;
  readonly ref: ActorRef<any>;
  readonly relay: Relay;
  readonly #port: SingletonPort;
  readonly #side: HostSide;
  readonly handOver: HandOverSide;

  /** With `before`, the ref and what its senders have buffered are taken over. */
  constructor(name: string, port: SingletonPort, before?: Singleton) {
    this.name = name;
    this.#port = port;
    const { system, node } = port;
    this.manager = new ManagerShell(name, {
      system,
      node,
      sendRequest: (to, nonce, epoch, via) => this.handOver.request(to, nonce, epoch, via),
      sendWithdraw: (to, nonce) => this.relay.send(to, withdrawEnvelope(name, nonce)),
      sendAnswer: (to, verdict, state) => this.handOver.answer(to, verdict, state),
      acknowledge: (stream, prefix, others) => this.#side.acknowledge(stream, prefix, others),
      resume: (stream) => this.#side.resume(stream),
      wantsFlush: () => this.#side.bookFlush(),
      changed: () => port.changed(),
      hosting: () => this.#side.announce(),
      leaveDone: () => port.leaveDone(),
    }, before?.manager.state);
    this.relay = new Relay(name, node, (uid) => this.manager.feed({ kind: 'reached', uid }));
    this.handOver = new HandOverSide(name, node, this.manager, this.relay);
    this.#side = new HostSide({
      name,
      node,
      host: this.manager.host,
      proxy: () => this.proxy,
      senderFrom: (peer, field) => system.refProvider.senderFrom(peer, field),
      copies: () => this.manager.start?.localMessages === 'copied',
      outside: port.outside,
    });
    this.proxy = new SingletonProxy(
      {
        name,
        node,
        local: this.#side,
        host: () => hostOf(node.view(), name),
        role: () => roleOf(node.view(), name),
        senderField: (sender) => system.refProvider.senderField(sender),
        deadLetter: (message, sender, reason, detail) =>
          system.deadLetters.publish({ message, sender, reason, detail, recipient: `singleton ${name}` }),
      },
      before?.proxy,
    );
    this.ref = before?.ref ?? new SingletonRef(name, {
      asks: system.asks,
      log: node.environment.log,
      tell: (message, sender) => port.current().proxy.tell(message, sender),
      problem: () => port.current().problem(),
    });
  }

  /** Why a question may have had no reply, in a sentence. */
  problem(): string {
    return replyProblem(this.#port.node.view(), this.name, this.manager.leaseProblem, this.proxy.stream);
  }

  onView(): void {
    this.manager.feed({ kind: 'view' });
    for (const member of this.#port.node.view().members) {
      const claim = member.hosting.get(this.name);
      if (claim === undefined || member.uid === this.#port.node.uid) continue;
      const { epochStarted, lastHost } = this.manager.state;
      if (claim.epoch > epochStarted || (claim.epoch === epochStarted && lastHost?.epoch !== epochStarted)) {
        this.manager.feed({ kind: 'hosted-elsewhere', address: member.address, epoch: claim.epoch });
      }
    }
    this.proxy.onView();
  }

  /** A member is gone for good: nothing of its streams or transfers is needed any more. */
  onMemberGone(uid: string): void {
    this.#side.forget(uid);
    this.handOver.forget(uid);
    this.relay.forget(uid);
  }

  /** What a sender that is no member may say: open a stream, and deliver on it. */
  fromOutside(peer: PeerIdentity, envelope: Envelope, bytes: number): void {
    if (envelope[0] === codes.streamOpen) this.#side.onOpen(peer, readOpen(envelope));
    else if (envelope[0] === codes.deliver) this.#side.onDeliver(peer, envelope, bytes);
  }

  onMessage(peer: PeerIdentity, envelope: Envelope, bytes: number): void {
    switch (envelope[0]) {
      case codes.relay: {
        const received = this.relay.receive(peer, envelope);
        return received && this.#onHandOver(received.from, received.inner);
      }
      case codes.streamOpen:
        return this.#side.onOpen(peer, readOpen(envelope));
      case codes.streamOpened:
        return this.proxy.onOpened(peer.uid, peer.address, readOpened(envelope));
      case codes.deliver:
        return this.#side.onDeliver(peer, envelope, bytes);
      case codes.acknowledge: {
        const { prefix, others } = readAcknowledge(envelope);
        return this.proxy.onAcknowledge(prefix, others);
      }
      case codes.refuse:
        return this.proxy.onRefuse(peer.uid, readRefuse(envelope));
      default:
        this.relay.direct(peer.uid);
        this.#onHandOver(peer, envelope);
    }
  }

  /** Directly, or through another member. */
  #onHandOver(peer: Speaker, envelope: Envelope): void {
    switch (envelope[0]) {
      case codes.handOverRequest: {
        const request = readRequest(envelope);
        const { epoch } = request;
        const nonce = ownNonce(peer, request);
        return this.manager.feed({ kind: 'request', asker: { uid: peer.uid, address: peer.address, nonce }, epoch });
      }
      case codes.handOverWithdraw:
        return this.manager.feed({ kind: 'withdrawn', uid: peer.uid, nonce: ownNonce(peer, readWithdraw(envelope)) });
      case codes.handOverAnswer:
        return this.handOver.onAnswer(peer, envelope);
      case codes.stateChunk:
        return this.handOver.onChunk(peer, envelope);
      case codes.stateMore:
        return this.handOver.onMore(peer, envelope);
    }
  }
}

/** Nobody speaks of the attempts of others. */
function ownNonce({ uid }: Speaker, { nonce }: { readonly nonce: string }): string {
  return attempterOf(nonce) === uid ? nonce : fail('nonce', nonce, `one of ${uid}`);
}
