/** Finds out when a majority of the `up` members has a cluster entry, and tells others when this node has one. */
import type { MembershipNode } from '../cluster/contract.ts';
import { limits } from '../limits.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import { isQuorum } from './spawn_decision.ts';
import { spawnEnvelope } from './spawn_messages.ts';

interface Confirmation {
  readonly uids: Set<string>;
  readonly look: () => void;
}

/** Asked of this node before it had the entry. */
interface Owed {
  readonly peer: PeerIdentity;
  readonly number: number;
  readonly key: string;
  readonly version: number;
}

export class SpawnMajority {
  readonly #node: MembershipNode;
  readonly #asked = new Map<number, Confirmation>();
  #owed: Owed[] = [];
  #number = 0;

  constructor(node: MembershipNode) {
    this.#node = node;
  }

  /** `done` is called once, with false after `ms`. Acknowledgements of members that are not up any more do not count. */
  ask(key: string, ms: number, done: (agreed: boolean) => void): void {
    const { environment, uid } = this.#node;
    const { entries, members } = this.#node.view();
    const version = entries.get(key)?.version;
    if (version === undefined) return done(false);
    const number = this.#number += 1;
    const uids = new Set([uid]);
    const end = (agreed: boolean): void => {
      if (!this.#asked.delete(number)) return;
      cancel();
      done(agreed);
    };
    const cancel = environment.timers.set(ms, () => end(false));
    const look = (): void => {
      if (isQuorum(this.#node.view(), uids)) end(true);
    };
    this.#asked.set(number, { uids, look });
    for (const member of members) {
      if (member.uid === uid || member.status !== 'up') continue;
      this.#node.sendSystem(member.address, spawnEnvelope({ step: 'confirm', number, key, version }), member.uid);
    }
    look();
  }

  confirmed(number: number, uid: string): void {
    const confirmation = this.#asked.get(number);
    confirmation?.uids.add(uid);
    confirmation?.look();
  }

  confirm(owed: Owed): void {
    this.#owed.push(owed);
    if (this.#owed.length > limits.spawnRequests) this.#owed.shift();
    this.#pay();
  }

  onChange(): void {
    this.#pay();
    for (const { look } of [...this.#asked.values()]) look();
  }

  #pay(): void {
    if (this.#owed.length === 0) return;
    const { entries, members } = this.#node.view();
    this.#owed = this.#owed.filter(({ peer, number, key, version }) => {
      if ((entries.get(key)?.version ?? 0) < version) return members.some((member) => member.uid === peer.uid);
      this.#node.sendSystem(peer.address, spawnEnvelope({ step: 'confirmed', number }), peer.uid);
      return false;
    });
  }
}
