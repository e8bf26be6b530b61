/** Rule 4 at work: probes addresses whose link was lost, and settles who holds an address that somebody new asks for. */
import type { Cancel } from '../actor/environment.ts';
import type { Address, DialFailure, PeerIdentity, ProbeOutcome, SeedAnswer } from '../transport/contract.ts';
import { isLoopbackAddress } from '../transport/address.ts';
import { leaderOf } from './convergence.ts';
import type { MemberRecord } from './gossip_state.ts';
import { selfRecord } from './membership_state.ts';
import type { NodeContext } from './node_context.ts';
import { type DeathCase, judgeProbe, newDeathCase } from './proven_death.ts';
import { isActive } from './transitions.ts';

export class DeathWatch {
  #node: NodeContext;
  readonly #mayHaveClaimed: (uid: string) => boolean;
  /** By uid. */
  #links = new Map<string, PeerIdentity>();
  #cases = new Map<string, Cancel>();
  /** Addresses being asked who they are. */
  #asking = new Map<Address, Cancel>();

  /**
   * @param mayHaveClaimed where an arbiter decides about splits: whether a member may have taken this node out before it
   * died. Then its death proves nothing about who goes on, and the arbiter is asked.
   */
  constructor(node: NodeContext, mayHaveClaimed: (uid: string) => boolean) {
    this.#node = node;
    this.#mayHaveClaimed = mayHaveClaimed;
  }

  stop(): void {
    for (const cancel of [...this.#cases.values(), ...this.#asking.values()]) cancel();
    this.#cases.clear();
    this.#asking.clear();
  }

  linkOpen(peer: PeerIdentity): void {
    this.#links.set(peer.uid, peer);
    this.#cases.get(peer.uid)?.();
    this.#cases.delete(peer.uid);
    const holder = this.#holderOf(peer.address);
    if (holder !== undefined && holder.uid !== peer.uid) this.contested(holder);
  }

  linkLost(peer: PeerIdentity): void {
    this.#links.delete(peer.uid);
    if (this.#mayBeProven(peer.uid)) this.#probe(peer.uid, newDeathCase);
  }

  /** Somebody else asks for, or answers at, the address of `holder`. Asked again with each further sign of it. */
  contested(holder: MemberRecord): void {
    const { address, uid } = holder;
    if (this.#asking.has(address) || uid === this.#node.settings.uid) return;
    const cancel = this.#node.settings.transport.seed(address, (answer) => {
      this.#asking.delete(address);
      this.#answered(uid, answer);
    });
    this.#asking.set(address, cancel);
  }

  #answered(uid: string, answer: SeedAnswer | DialFailure): void {
    const state = this.#node.membership();
    const holder = state.gossip.records.get(uid);
    if ('reason' in answer || answer.uid === uid || holder === undefined || !isActive(holder.status)) return;
    if (state.phase !== 'member' || this.#links.has(uid) || answer.address !== holder.address) return;
    const self = selfRecord(state);
    const sameCluster = answer.clusterId === state.gossip.clusterId && !state.gossip.records.has(answer.uid);
    if (sameCluster && self.status === 'up' && !answer.members.includes(self.address)) {
      const why = `this node was removed: ${answer.address} is in the cluster again, and does not know it`;
      this.#node.dispatch({ kind: 'end', why, selfDown: true, rejoin: true });
      return;
    }
    const why = `a new process answers at ${holder.address}`;
    const terminated = isLoopbackAddress(holder.address);
    if (this.#mayHaveClaimed(uid)) return;
    if (terminated || this.#leadsWithout(uid)) this.#node.dispatch({ kind: 'down', uids: [uid], terminated, why });
  }

  /** Is this node the leader once `uid` is left out? */
  #leadsWithout(uid: string): boolean {
    const records = new Map(this.#node.membership().gossip.records);
    records.delete(uid);
    return leaderOf(records)?.uid === this.#node.settings.uid;
  }

  #holderOf(address: Address): MemberRecord | undefined {
    for (const record of this.#node.membership().gossip.records.values()) {
      if (record.address === address && isActive(record.status)) return record;
    }
    return undefined;
  }

  #mayBeProven(uid: string): boolean {
    const state = this.#node.membership();
    const record = state.gossip.records.get(uid);
    if (state.phase !== 'member' || record === undefined || uid === this.#node.settings.uid) return false;
    if (record.status !== 'joining' && record.status !== 'up') return false;
    return isLoopbackAddress(record.address) && !this.#links.has(uid);
  }

  #probe(uid: string, state: DeathCase): void {
    const { environment, settings } = this.#node;
    const record = this.#node.membership().gossip.records.get(uid);
    if (record === undefined || !this.#mayBeProven(uid)) return void this.#cases.delete(uid);
    this.#cases.get(uid)?.();
    const dialledAt = environment.clock.now();
    const cancel = settings.transport.probe(record.address, (outcome) => this.#probed(uid, state, outcome, dialledAt));
    this.#cases.set(uid, cancel);
  }

  #probed(uid: string, state: DeathCase, outcome: ProbeOutcome, dialledAt: number): void {
    this.#cases.delete(uid);
    if (!this.#mayBeProven(uid)) return;
    const verdict = judgeProbe(state, outcome, dialledAt);
    const { timers } = this.#node.environment;
    if (verdict.kind === 'proven') {
      if (this.#mayHaveClaimed(uid)) return;
      const why = 'its process is gone: link lost and two dials refused';
      return this.#node.dispatch({ kind: 'down', uids: [uid], terminated: true, why });
    }
    this.#cases.set(uid, timers.set(verdict.afterMs, () => this.#probe(uid, verdict.next)));
  }
}
