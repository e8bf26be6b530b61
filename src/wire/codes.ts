/** The first field of every envelope between nodes. Codes are never reused for another shape. */
export const codes = {
  /**
   * User lane: [tell, path, sender, body, incarnation]. `sender` is null, a ref, or [path, incarnation] for an actor of
   * the sending node. Incarnation 0 means whoever is there.
   */
  tell: 1,
  /**
   * Death watch: [watch | unwatch, path, incarnation] on the system lane; [terminated, path, incarnation, cause] on the
   * user lane, after what the actor had sent.
   */
  watch: 2,
  unwatch: 3,
  terminated: 4,
  /** User lane, so that it comes after messages sent before: [stop, path, incarnation]. */
  stop: 5,

  /** Membership. */
  join: 10,
  gossip: 11,
  gossipDigest: 12,
  heartbeat: 13,
  heartbeatAck: 14,
  pledgeRequest: 15,
  pledgeAnswer: 16,
  removedNotice: 17,
  gatePing: 18,
  gatePong: 19,
  joinRefused: 20,
  gossipDelta: 21,

  /** Singleton hand-over (system lane). */
  handOverRequest: 30,
  handOverAnswer: 31,
  stateChunk: 32,
  relay: 33,
  handOverWithdraw: 34,
  stateMore: 35,

  /** Singleton delivery. */
  streamOpen: 40,
  streamOpened: 41,
  deliver: 42,
  acknowledge: 43,
  refuse: 44,

  /** Spawn from any node: [spawn, step, …]. */
  spawn: 50,

  /** Quorum lease, system lane. */
  leaseAsk: 60,
  leaseAnswer: 61,

  /**
   * Callers from outside, between members. To the host: [callerToHost, caller, session, step, name, …] and, on the user
   * lane, [callerDeliver, caller, session, name, epoch, seq, repeat, receiver, body]. To the caller's gateway:
   * [callerAnswer, caller, streamOpened | acknowledge | refuse] and, on the user lane, [callerReply, caller, receiver, body].
   */
  callerToHost: 70,
  callerDeliver: 71,
  callerAnswer: 72,
  callerReply: 73,

  /** From a caller to its gateway. */
  hello: 80,
  use: 81,
  open: 82,
  told: 83,
  bye: 84,
  ping: 85,

  /** From a gateway to its caller. */
  welcome: 90,
  host: 91,
  answer: 92,
  reply: 93,
  pong: 94,
} as const;
