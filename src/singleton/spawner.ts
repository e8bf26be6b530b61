/**
 * Spawning from any node, on one member: the caller asks the leader, the leader checks, registers and waits for a majority,
 * and every node that has the kind starts the singleton like one of its own. Registrations are cluster entries.
 */
import type { MemberChange, MembershipNode } from '../cluster/contract.ts';
import type { PeerIdentity } from '../transport/contract.ts';
import { codes } from '../wire/codes.ts';
import { spawnError } from './spawn_errors.ts';
import { answerMs, type Done, type IsFree, SpawnLeader } from './spawn_leader.ts';
import { SpawnMajority } from './spawn_majority.ts';
import { readSpawnMessage, spawnEnvelope, type SpawnMessage } from './spawn_messages.ts';
import type { Registration } from './spawn_registration.ts';

/** How long a caller waits for the leader: both of its waits, and some. Its own verdict tells more than silence. */
const leaderMs = 2 * answerMs + 1_000;

interface Request {
  readonly leaderUid: string;
  readonly done: Done;
}

export class Spawner {
  readonly #node: MembershipNode;
  readonly #isFree: IsFree;
  readonly #majority: SpawnMajority;
  readonly #leader: SpawnLeader;
  readonly #requests = new Map<number, Request>();
  #number = 0;
  #over = false;

  constructor(node: MembershipNode, isFree: IsFree) {
    this.#node = node;
    this.#isFree = isFree;
    this.#majority = new SpawnMajority(node);
    this.#leader = new SpawnLeader(node, isFree, this.#majority);
    // What is not well-formed throws, and is counted where it came in.
    node.onMessage(codes.spawn, (peer, envelope) => {
      const message = readSpawnMessage(envelope);
      if (message) this.#receive(peer, message);
    });
    node.onChange((_view, changes) => this.#onChange(changes));
  }

  /** One attempt: `done` is called once. */
  attempt(wanted: Registration, done: Done): void {
    const { leader } = this.#node.view();
    if (this.#over) return done(spawnError('leader-unavailable', 'this node is not in the cluster at the moment'));
    if (!leader) return done(spawnError('leader-unavailable', 'the cluster has no leader at the moment'));
    if (leader.uid === this.#node.uid) return this.#leader.lead(wanted, done);
    const number = this.#number += 1;
    const end: Done = (error) => {
      if (!this.#requests.delete(number)) return;
      cancel();
      done(error);
    };
    const cancel = this.#node.environment.timers.set(leaderMs, () => {
      end(spawnError('leader-unavailable', `the leader ${leader.address} did not answer within ${leaderMs} ms`));
    });
    this.#requests.set(number, { leaderUid: leader.uid, done: end });
    this.#node.sendSystem(leader.address, spawnEnvelope({ step: 'request', number, wanted }), leader.uid);
  }

  /** Waits until a majority has the entry as this node has it. */
  confirmEntry(key: string, done: Done): void {
    if (this.#over) return done(spawnError('leader-unavailable', 'this node is not in the cluster at the moment'));
    const why = 'no majority of the members knows of it yet';
    this.#majority.ask(key, answerMs, (agreed) => done(agreed ? undefined : spawnError('no-quorum', why)));
  }

  #receive(peer: PeerIdentity, message: SpawnMessage): void {
    const { number } = message;
    const send = (answer: SpawnMessage): void => this.#node.sendSystem(peer.address, spawnEnvelope(answer), peer.uid);
    switch (message.step) {
      case 'request':
        return this.#leader.lead(message.wanted, (error) => send({ step: 'reply', number, error }));
      case 'reply':
        return this.#answered(peer, number)?.(message.error);
      case 'check':
        return send({ step: 'checked', number, free: this.#isFree(message.name, message.asHost) });
      case 'checked':
        return this.#leader.checked(peer.uid, number, message.free);
      case 'confirm':
        return this.#majority.confirm({ peer, number, key: message.key, version: message.version });
      case 'confirmed':
        return this.#majority.confirmed(number, peer.uid);
      default:
        return message satisfies never;
    }
  }

  #answered(peer: PeerIdentity, number: number): Done | undefined {
    const request = this.#requests.get(number);
    return request?.leaderUid === peer.uid ? request.done : undefined;
  }

  #onChange(changes: readonly MemberChange[]): void {
    this.#over ||= changes.some((change) => change.kind === 'self-removed');
    this.#leader.collect();
    this.#majority.onChange();
    const leader = this.#node.view().leader?.uid;
    for (const { leaderUid, done } of [...this.#requests.values()]) {
      if (leaderUid === leader && !this.#over) continue;
      done(spawnError('leader-unavailable', 'the leader has changed before it answered'));
    }
  }
}
