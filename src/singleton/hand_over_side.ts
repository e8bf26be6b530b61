/** Hand-over as messages: requests, answers, and the state that travels before an answer, a few chunks at a time. */
import type { MembershipNode } from '../cluster/contract.ts';
import type { Envelope } from '../transport/peers_contract.ts';
import { crc32 } from '../wire/crc32.ts';
import type { ManagerShell } from './manager_shell.ts';
import type { Asker, ManagerState, Recipient, Verdict } from './manager_state.ts';
import {
  answerEnvelope,
  chunkEnvelope,
  moreEnvelope,
  readAnswer,
  readChunk,
  readMore,
  requestEnvelope,
} from './messages.ts';
import type { Relay, Speaker } from './relay.ts';
import { chunksOf, StateAssembly } from './state_transfer.ts';

/** Requests to a peer that is sending state are held back while its chunks keep coming. */
const patienceMs = 1_000;
/** Broken transfers after which the hand-over goes on without the state. */
const transferTries = 4;
/** Chunks on their way at any moment, so that nothing else on the link waits long. */
const chunkWindow = 4;

/** State on its way to one asker; the answer follows the last chunk. */
interface Transfer {
  readonly to: Asker;
  /** Of the instance that left it. */
  readonly epoch: number;
  readonly chunks: readonly Uint8Array[];
  /** Chunks handed to the link. */
  sent: number;
  lastAt: number;
  readonly finish: () => void;
}

export class HandOverSide {
  /** Pieces of state that came in, ever. */
  chunks = 0;
  readonly #name: string;
  readonly #node: MembershipNode;
  readonly #manager: ManagerShell;
  readonly #relay: Relay;
  readonly #assemblies = new Map<string, StateAssembly>();
  readonly #broken = new Map<string, number>();
  readonly #transfers = new Map<string, Transfer>();
  /** By uid: the epoch of the result that was handed over to it, whole. */
  readonly #handed = new Map<string, number>();

  constructor(name: string, node: MembershipNode, manager: ManagerShell, relay: Relay) {
    this.#name = name;
    this.#node = node;
    this.#manager = manager;
    this.#relay = relay;
  }

  /** The process is gone for good. What it got a part of only, it cannot have started from. */
  forget(uid: string): void {
    this.#assemblies.delete(uid);
    this.#broken.delete(uid);
    const transfer = this.#transfers.get(uid);
    this.#transfers.delete(uid);
    const partOnly = transfer !== undefined && this.#handed.get(uid) !== transfer.epoch;
    this.#handed.delete(uid);
    if (partOnly) this.#manager.feed({ kind: 'withdrawn', uid, nonce: transfer.to.nonce });
  }

  get #now(): number {
    return this.#node.environment.clock.now();
  }

  request(to: Recipient, nonce: string, epoch: number, via: Recipient | undefined): void {
    const assembly = this.#assemblies.get(to.uid);
    if (assembly?.nonce === nonce && this.#now - assembly.lastAt < patienceMs) return;
    const envelope = requestEnvelope({ name: this.#name, nonce, epoch });
    this.#node.sendSystem(to.address, envelope, to.uid);
    if (via !== undefined) this.#relay.sendThrough(via, to, envelope);
  }

  answer(to: Asker, verdict: Verdict, state: ManagerState): void {
    const bytes = verdict.kind === 'handed-over' ? verdict.result.state : null;
    const running = this.#transfers.get(to.uid);
    // Asked again while the state is on its way: it goes on.
    if (bytes && running?.to.nonce === to.nonce && this.#now - running.lastAt < patienceMs) return;
    this.#transfers.delete(to.uid);
    const finish = (): void => this.#sendAnswer(to, verdict, state, bytes);
    if (!bytes) return finish();
    const epoch = verdict.kind === 'handed-over' ? verdict.result.epoch : 0;
    const transfer: Transfer = { to, epoch, chunks: chunksOf(bytes), sent: 0, lastAt: this.#now, finish };
    this.#transfers.set(to.uid, transfer);
    this.#send(transfer, chunkWindow);
  }

  #send(transfer: Transfer, upTo: number): void {
    const { to, chunks } = transfer;
    transfer.lastAt = this.#now;
    for (; transfer.sent < Math.min(upTo, chunks.length); transfer.sent += 1) {
      const index = transfer.sent;
      const chunk = chunkEnvelope({ name: this.#name, nonce: to.nonce, index, bytes: chunks[index]! });
      this.#relay.send(to, chunk);
    }
    if (transfer.sent < chunks.length) return;
    this.#transfers.delete(to.uid);
    transfer.finish();
  }

  #sendAnswer(to: Asker, verdict: Verdict, state: ManagerState, bytes: Uint8Array | null): void {
    if (verdict.kind === 'handed-over') this.#handed.set(to.uid, verdict.result.epoch);
    const endedAt = verdict.kind === 'handed-over' ? verdict.result.endedAt : this.#now;
    const message = answerEnvelope({
      name: this.#name,
      nonce: to.nonce,
      epochSeen: state.epochSeen,
      epochStarted: state.epochStarted,
      verdict,
      endedAgoMs: Math.max(0, Math.round(this.#now - endedAt)),
      stateBytes: bytes ? bytes.length : -1,
      checksum: bytes ? crc32(bytes) : 0,
    });
    this.#relay.send(to, message);
  }

  /** The asker has so many chunks: more may follow. */
  onMore(peer: Speaker, envelope: Envelope): void {
    const { nonce, received } = readMore(envelope);
    const transfer = this.#transfers.get(peer.uid);
    if (transfer?.to.nonce === nonce) this.#send(transfer, received + chunkWindow);
  }

  onChunk(peer: Speaker, envelope: Envelope): void {
    const { nonce, index, bytes } = readChunk(envelope);
    this.chunks += 1;
    const { phase } = this.#manager.state;
    if (phase.kind !== 'becoming-host' || phase.attempt.nonce !== nonce) return;
    let assembly = this.#assemblies.get(peer.uid);
    if (assembly?.nonce !== nonce) {
      assembly = new StateAssembly(nonce, this.#manager.start?.maxHandOverStateBytes ?? 0, this.#now);
      this.#assemblies.set(peer.uid, assembly);
    }
    assembly.add(index, bytes, this.#now);
    this.#relay.send(peer, moreEnvelope(this.#name, nonce, index + 1));
  }

  onAnswer(peer: Speaker, envelope: Envelope): void {
    const answer = readAnswer(envelope, this.#now);
    const { nonce, epochSeen, epochStarted } = answer;
    let verdict = answer.verdict;
    if (verdict.kind === 'handed-over' && answer.stateBytes >= 0) {
      const assembly = this.#assemblies.get(peer.uid);
      const state = assembly?.nonce === nonce ? assembly.finish(answer.stateBytes, answer.checksum) : 'incomplete';
      this.#assemblies.delete(peer.uid);
      if (typeof state === 'string') {
        const broken = (this.#broken.get(peer.uid) ?? 0) + 1;
        this.#broken.set(peer.uid, broken);
        if (state !== 'too-large' && broken < transferTries) return;
        this.#node.environment.log.warn(
          `singleton ${this.#name}: the state handed over did not arrive whole: cold start`,
          { why: state, from: peer.address },
        );
      } else {
        verdict = { kind: 'handed-over', result: { ...verdict.result, state } };
      }
    }
    this.#broken.delete(peer.uid);
    this.#manager.feed({ kind: 'answer', uid: peer.uid, nonce, epochSeen, epochStarted, verdict });
  }
}
