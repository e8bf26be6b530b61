/**
 * What is done only for speed, each with its switch. Turned off, everything behaves the same and is slower: a test holds
 * them against each other, and benchmarks show what each is worth (`npm run bench -- --without batching`). Nobody else
 * turns them off.
 */
export const fastPaths = {
  /** A message told while nothing runs is handled at the end of the present callback, not in a turn of its own. */
  soon: true,
  /** The messages of a turn travel in one frame. */
  batching: true,
  /** What a callback sends leaves at its end, not at the end of the turn. */
  soonFrames: true,
  /** What both lanes have to send travels in one frame, while it is little. */
  jointFrames: true,
  /** Values with nothing special in them are encoded as they are, not from a copy. */
  direct: true,
  /** Values of plain objects, arrays, text, numbers and bytes take a shorter way to bytes and back. */
  plain: true,
  /** An actor holds a mailbox only while it has something to handle. */
  sharedInboxes: true,
  /** A large message becomes a frame of its own at once. */
  largeFrames: true,
  /** A large message that nothing waits in front of is sent from memory that is used again. */
  onTheSpot: true,
  /** Senders travel as path and incarnation, not as whole refs. */
  shortSenders: true,
  /** What goes to several nodes is encoded for the first of them and once more for all others. */
  encodedOnce: true,
  /** Hash, order and ring of the members are carried over where a few of them change. */
  carriedIndex: true,
  /** A node that is awake does what would be due soon, and small clusters beat in step. */
  pulse: true,
  /** What was computed from a state, a record or a set that does not change is kept with it. */
  memos: true,
  /** Records that gossip brings and that are known are the known objects, compared by identity from then on. */
  knownRecords: true,
  /** In a large cluster what changed travels alone, not the whole state. */
  deltas: true,
  /** An actor handles several messages in one go, the more the quicker it is. */
  quotas: true,
  /** A question has a name only once somebody asks for it. */
  lateNames: true,
  /** Appends to a file journal that wait share one write and one sync. */
  groupCommit: true,
};

export type FastPath = keyof typeof fastPaths;
