/**
 * Hand-over messages by way of a third member, where two members cannot reach each other (rule 9). The one in the middle
 * vouches for whom it passes on. That gives it no power it has not got: any member may move a singleton, and a request is
 * obeyed only for a member that the receiver itself can believe to be the next host.
 */
import type { MembershipNode } from '../cluster/contract.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { codes } from '../wire/codes.ts';
import type { Recipient } from './manager_state.ts';
import { readRelay, relayEnvelope } from './relay_messages.ts';

/** Who a message is from. */
export type Speaker = Pick<PeerIdentity, 'uid' | 'address'>;

const passedOn: ReadonlySet<number> = new Set([
  codes.handOverRequest,
  codes.handOverAnswer,
  codes.handOverWithdraw,
  codes.stateChunk,
  codes.stateMore,
]);

export class Relay {
  /** Messages passed on for others. */
  relayed = 0;
  readonly #name: string;
  readonly #node: MembershipNode;
  readonly #reached: (uid: string) => void;
  /** By uid: the member through which the last message from there came. */
  readonly #routes = new Map<string, Recipient>();

  /** `reached`: a member says that it can reach the process `uid`. */
  constructor(name: string, node: MembershipNode, reached: (uid: string) => void) {
    this.#name = name;
    this.#node = node;
    this.#reached = reached;
  }

  forget(uid: string): void {
    this.#routes.delete(uid);
    for (const [other, via] of this.#routes) if (via.uid === uid) this.#routes.delete(other);
  }

  /** The way that the last message from there has come. */
  send(to: Recipient, envelope: Envelope): void {
    const via = this.#routes.get(to.uid);
    if (via === undefined) return this.#node.sendSystem(to.address, envelope, to.uid);
    this.sendThrough(via, to, envelope);
  }

  sendThrough(via: Recipient, to: Recipient, inner: Envelope): void {
    this.#node.sendSystem(via.address, relayEnvelope({ name: this.#name, step: 'pass', uid: to.uid, inner }), via.uid);
  }

  /** A hand-over message came from there directly. */
  direct(uid: string): void {
    this.#routes.delete(uid);
  }

  /** What is in it for this node, and from whom. */
  receive(peer: PeerIdentity, envelope: Envelope): { readonly from: Speaker; readonly inner: Envelope } | undefined {
    const { step, uid, inner } = readRelay(envelope);
    if (step === 'reached') {
      this.#reached(uid);
      return undefined;
    }
    const member = this.#node.view().members.find((candidate) => candidate.uid === uid);
    if (inner === undefined || !passedOn.has(inner[0]) || inner[1] !== this.#name) return undefined;
    if (member === undefined || member.status === 'down' || uid === this.#node.uid || uid === peer.uid) {
      return undefined;
    }
    const { address } = member;
    if (step === 'from') {
      this.#routes.set(uid, { uid: peer.uid, address: peer.address });
      return { from: { uid, address }, inner };
    }
    this.relayed += 1;
    const name = this.#name;
    this.#node.sendSystem(address, relayEnvelope({ name, step: 'from', uid: peer.uid, inner }), uid);
    if (inner[0] === codes.handOverRequest && member.reachable && this.#node.linked(address, uid)) {
      this.#node.sendSystem(peer.address, relayEnvelope({ name, step: 'reached', uid, inner: undefined }), peer.uid);
    }
    return undefined;
  }
}
