/**
 * A deadline failure detector: a watched peer is unreachable once it has been silent for `unreachableAfterMs`, and
 * reachable again with its next fresh sign of life. Two things bend the deadline:
 *
 * - This node's own pause. A tick that comes late means that this node was not listening; all deadlines move by as much,
 *   and leave room for one round of heartbeats, so that a node that wakes up never blames its peers.
 * - Lost links. When this node's link to a peer was lost and enough other observers say the same of theirs, silence of
 *   `suspectAfterMs` is enough: a crashed process closes its sockets long before its heartbeats are missed.
 *
 * Everything is kept per uid, so sequence numbers belong to one incarnation; only the monotonic clock is used.
 */
import { OptionsError } from '../actor/options.ts';

export interface DetectorOptions {
  readonly heartbeatMs: number;
  readonly unreachableAfterMs: number;
  /** A tick this late counts as a pause. Default: half a heartbeat. */
  readonly pauseThresholdMs?: number;
  /** Silence that is enough for a peer whose link was lost by all who must confirm. Default: one heartbeat. */
  readonly suspectAfterMs?: number;
  /** How many other observers must have lost their link as well. Default 1; at least 1. */
  readonly confirmations?: number;
}

export interface WatchedPeer {
  /** The time its silence is counted from. */
  readonly lastSignAt: number;
  /** The highest sequence number accepted; -1 before the first. */
  readonly sequence: number;
  readonly reachable: boolean;
  /** Observers that lost their link to it since its last sign of life; this node's own uid among them. */
  readonly linkLostBy: ReadonlySet<string>;
}

export interface DetectorState {
  readonly selfUid: string;
  readonly peers: ReadonlyMap<string, WatchedPeer>;
  /** When the next tick is due; undefined before the first. */
  readonly tickDueAt: number | undefined;
}

export type DetectorEvent =
  /** Replaces the set of watched peers. A new one has the whole time for its first sign of life. */
  | { readonly kind: 'watch'; readonly uids: Iterable<string> }
  /** A heartbeat or the answer to one. Sequence numbers grow within one incarnation. */
  | { readonly kind: 'heartbeat'; readonly uid: string; readonly sequence: number }
  /** `by` (this node or another observer) has lost its link to `uid`. */
  | { readonly kind: 'link-lost'; readonly uid: string; readonly by: string }
  /** `by` has a link to `uid` again. */
  | { readonly kind: 'link-open'; readonly uid: string; readonly by: string }
  /** To be sent at `tickDueAt`, or as soon after as the event loop allows. */
  | { readonly kind: 'tick' };

export type DetectorEffect =
  | { readonly kind: 'unreachable'; readonly uid: string }
  | { readonly kind: 'reachable'; readonly uid: string }
  /** A peer that was unreachable is not watched any more: this node has no verdict on it. */
  | { readonly kind: 'dropped'; readonly uid: string }
  /** This node's event loop stood still this long. Everything else that counts elapsed silence must be told. */
  | { readonly kind: 'paused'; readonly pauseMs: number };

export interface DetectorStep {
  readonly state: DetectorState;
  readonly effects: readonly DetectorEffect[];
}

/** A sequence number may not jump further than this at once: a forged one cannot silence a peer for good. */
const largestJump = 2 ** 32;

export function newDetector(selfUid: string): DetectorState {
  return { selfUid, peers: new Map(), tickDueAt: undefined };
}

export function stepDetector(
  state: DetectorState,
  event: DetectorEvent,
  now: number,
  options: DetectorOptions,
): DetectorStep {
  switch (event.kind) {
    case 'watch':
      return watch(state, event.uids, now);
    case 'heartbeat':
      return heartbeat(state, event.uid, event.sequence, now);
    case 'link-lost':
    case 'link-open':
      return link(state, event.uid, event.by, event.kind === 'link-lost', now, options);
    case 'tick':
      return tick(state, now, options);
    default:
      return event satisfies never;
  }
}

/** @throws OptionsError */
export function checkDetectorOptions(options: DetectorOptions): void {
  const { heartbeatMs, unreachableAfterMs, suspectAfterMs = heartbeatMs, confirmations = 1 } = options;
  const refuse = (field: string, value: unknown, rule: string): never => {
    throw new OptionsError('FailureDetectorOptions', field, value, rule);
  };
  if (!(heartbeatMs > 0)) refuse('heartbeatMs', heartbeatMs, 'must be a positive number of milliseconds');
  if (!(unreachableAfterMs >= 2 * heartbeatMs)) {
    refuse('unreachableAfterMs', unreachableAfterMs, `must be at least two heartbeats (2 · ${heartbeatMs} ms)`);
  }
  if (!(suspectAfterMs > 0 && suspectAfterMs <= unreachableAfterMs)) {
    refuse(
      'suspectAfterMs',
      suspectAfterMs,
      `must be more than 0 and at most unreachableAfterMs (${unreachableAfterMs})`,
    );
  }
  if (!(Number.isSafeInteger(confirmations) && confirmations >= 1)) {
    refuse('confirmations', confirmations, 'must be a whole number of at least 1');
  }
}

function watch(state: DetectorState, uids: Iterable<string>, now: number): DetectorStep {
  const wanted = new Set(uids);
  wanted.delete(state.selfUid);
  const peers = new Map<string, WatchedPeer>();
  for (const uid of wanted) {
    peers.set(uid, state.peers.get(uid) ?? { lastSignAt: now, sequence: -1, reachable: true, linkLostBy: new Set() });
  }
  const effects: DetectorEffect[] = [];
  for (const [uid, peer] of state.peers) {
    if (!peer.reachable && !wanted.has(uid)) effects.push({ kind: 'dropped', uid });
  }
  return { state: { ...state, peers }, effects };
}

function heartbeat(state: DetectorState, uid: string, sequence: number, now: number): DetectorStep {
  const peer = state.peers.get(uid);
  if (peer === undefined || !isFresh(sequence, peer.sequence)) return { state, effects: [] };
  const next: WatchedPeer = { lastSignAt: now, sequence, reachable: true, linkLostBy: new Set() };
  const effects: DetectorEffect[] = peer.reachable ? [] : [{ kind: 'reachable', uid }];
  return { state: withPeer(state, uid, next), effects };
}

function isFresh(sequence: number, last: number): boolean {
  if (!Number.isSafeInteger(sequence) || sequence <= last) return false;
  // The first one seen may be any: the peer may have been beating for long.
  return last === -1 ? sequence >= 0 : sequence - last <= largestJump;
}

function link(
  state: DetectorState,
  uid: string,
  by: string,
  lost: boolean,
  now: number,
  options: DetectorOptions,
): DetectorStep {
  const peer = state.peers.get(uid);
  if (peer === undefined || by === uid || peer.linkLostBy.has(by) === lost) return { state, effects: [] };
  const linkLostBy = new Set(peer.linkLostBy);
  if (lost) linkLostBy.add(by);
  else linkLostBy.delete(by);
  const next = withPeer(state, uid, { ...peer, linkLostBy });
  const tickDueAt = nextTick(next, now, options);
  // A shorter deadline needs an earlier tick; a tick that is overdue already stays so, to be measured as a pause.
  const earlier = state.tickDueAt !== undefined && state.tickDueAt > now
    ? Math.min(state.tickDueAt, tickDueAt)
    : undefined;
  return { state: { ...next, tickDueAt: earlier ?? state.tickDueAt }, effects: [] };
}

function tick(state: DetectorState, now: number, options: DetectorOptions): DetectorStep {
  const effects: DetectorEffect[] = [];
  const pauseMs = state.tickDueAt === undefined ? 0 : now - state.tickDueAt;
  const paused = pauseMs > (options.pauseThresholdMs ?? options.heartbeatMs / 2);
  if (paused) effects.push({ kind: 'paused', pauseMs });
  const peers = new Map<string, WatchedPeer>();
  for (const [uid, known] of state.peers) {
    const peer = paused ? { ...known, lastSignAt: afterPause(state, known, pauseMs, now, options) } : known;
    const silent = peer.reachable && now >= peer.lastSignAt + patience(state, peer, options);
    if (silent) effects.push({ kind: 'unreachable', uid });
    peers.set(uid, silent ? { ...peer, reachable: false } : peer);
  }
  const next = { ...state, peers };
  return { state: { ...next, tickDueAt: nextTick(next, now, options) }, effects };
}

/** Moved by the pause, with at least two heartbeats of patience left, and never into the future. */
function afterPause(
  state: DetectorState,
  peer: WatchedPeer,
  pauseMs: number,
  now: number,
  options: DetectorOptions,
): number {
  const oneRound = now - Math.max(0, patience(state, peer, options) - 2 * options.heartbeatMs);
  return Math.min(now, Math.max(peer.lastSignAt + pauseMs, oneRound));
}

/** How long this peer may be silent now. */
function patience(state: DetectorState, peer: WatchedPeer, options: DetectorOptions): number {
  const { linkLostBy } = peer;
  const others = linkLostBy.size - 1;
  const confirmed = linkLostBy.has(state.selfUid) && others >= (options.confirmations ?? 1);
  return confirmed ? options.suspectAfterMs ?? options.heartbeatMs : options.unreachableAfterMs;
}

/** At the first deadline, and at least once a heartbeat so that a pause is measured soon. */
function nextTick(state: DetectorState, now: number, options: DetectorOptions): number {
  let at = now + options.heartbeatMs;
  for (const peer of state.peers.values()) {
    if (peer.reachable) at = Math.min(at, peer.lastSignAt + patience(state, peer, options));
  }
  return Math.max(at, now);
}

function withPeer(state: DetectorState, uid: string, peer: WatchedPeer): DetectorState {
  return { ...state, peers: new Map(state.peers).set(uid, peer) };
}
