/**
 * Every bound of the product, in one place. Reaching one is counted and visible in the metrics. Units: bytes,
 * milliseconds or a count, as the name says.
 */
/** Those that callers from outside need too: a bundle of theirs carries these alone. */
export const coreLimits = {
  /** One WebSocket frame; larger messages are split. */
  frameBytes: 1024 * 1024,
  /** A batch of envelopes is sent at the latest when it has grown to this. */
  batchBytes: 64 * 1024,
  /** Frames of one link with frame integrity, and their bytes, that wait for their check; beyond it the link is closed. */
  integrityBacklogFrames: 65_536,
  integrityBacklogBytes: 64 * 1024 * 1024,
  /** CBOR nesting, checked before decoding. */
  depth: 64,
  /** User bytes handed to a socket and not yet sent; above it the user lane waits and only system frames pass. */
  socketBufferBytes: 1024 * 1024,
  handshakeMs: 5_000,
  dialMs: 3_000,
  members: 1_000,
  uidChars: 64,
  /** Unacknowledged messages per sender stream and singleton that may be on their way or in the host's mailbox. */
  streamWindow: 65_536,
  /** The same in bytes: what is sent and not acknowledged, per sender stream and singleton; one message may go beyond it. */
  streamWindowBytes: 16 * 1024 * 1024,
  /** Largest `bufferSize` of a singleton ref. */
  proxyBuffer: 1_000_000,
  /** Largest `bufferBytes` of a singleton ref. */
  proxyBufferBytes: 4 * 1024 * 1024 * 1024,
  /** Sender streams a host keeps a duplicate filter for. */
  streams: 10_000,
  /** Asks in flight per node. */
  asks: 100_000,
  callerSingletons: 100,
  /** One message of a caller, encoded; and one frame on its connection, in both directions. */
  callerMessageBytes: 256 * 1024,
  callerFrameBytes: 320 * 1024,
  /** Unacknowledged messages of one caller to one singleton. */
  callerWindow: 1_024,
  /** Messages per second from one caller unless its grant says otherwise; each begun 4 KiB counts as one more. */
  callerRate: 1_000,
  callerRateBytes: 4_096,
  /** Waiting for one caller that reads slowly; beyond it its connection ends, and it connects again. */
  callerQueueMessages: 10_000,
  callerQueueBytes: 4 * 1024 * 1024,
  /** A caller says something at least this often; three such times of silence end a connection, on both sides. */
  callerPingMs: 5_000,
  /** Waits of a caller between connections: the first, and the longest. */
  callerRetryMs: 100,
  callerRetryMaxMs: 5_000,
  /** A caller whose messages make no progress for this long tries another node. */
  callerStallMs: 15_000,
  /** Addresses a caller may connect to; receivers it may have; singletons it may use. */
  callerUrls: 64,
  callerReceivers: 10_000,
  callerNames: 1_000,
  /** Dead letters kept for inspection (all are counted and published). */
  deadLettersKept: 100,
  /** And about their size together; a larger one is counted and published, and not kept. */
  deadLettersKeptBytes: 16 * 1024 * 1024,
  secretMinChars: 16,
  secretChars: 1_024,
  typeNameChars: 255,
  roleChars: 64,
  hostChars: 255,
  timerMs: 2 ** 31 - 1,
  urlChars: 2_048,
} as const;

// A function, so that bundlers see that nothing is lost with it.
const others = /* @__PURE__ */ (() => ({
  /** One message, encoded. */
  messageBytes: 4 * 1024 * 1024,
  /** One message of the nodes among themselves, encoded; the largest is the whole state of a large cluster. */
  systemMessageBytes: 16 * 1024 * 1024,
  /** The whole state of a cluster, and items in it: no node starts a singleton beyond it, so that the state stays one message. */
  stateBytes: 12 * 1024 * 1024,
  stateItems: 750_000,
  /** Items (array elements, map entries, strings) in one frame, checked before decoding. */
  itemsPerFrame: 1_000_000,
  /** User messages and bytes waiting per peer (no link yet, or a slow one); beyond it they are dead letters. */
  peerQueueMessages: 100_000,
  peerQueueBytes: 64 * 1024 * 1024,
  /** System messages waiting per peer while there is no link. */
  peerSystemQueue: 1_000,
  /** Bytes handed to a socket and not yet sent, above which system messages wait too (in `peerSystemQueue`). */
  systemBufferBytes: 8 * 1024 * 1024,
  /** How long a deliberate close of a link may wait for its queues to be sent. */
  disconnectFlushMs: 1_000,
  /** Waits between failed dials of one address: the first, and the longest. */
  redialMs: 50,
  redialMaxMs: 1_000,
  inboundConnections: 1_024,
  tombstones: 10_000,
  /** How long a removed member is remembered; the monotonic clock of each node. */
  tombstoneMs: 24 * 60 * 60 * 1000,
  /** Members of its last cluster that a node asks when it comes back. */
  witnesses: 100,
  /** Cluster entries (pins, registrations) and the length of their keys. */
  entries: 20_000,
  entryKeyChars: 512,
  /** How far a counter in gossip (versions, numbers) may run ahead of what a node knows. */
  counterJump: 1_000_000,
  /** Singleton names a node knows of. */
  singletons: 10_000,
  /** Requests to spawn that a leader has under way, and confirmations that a member owes. */
  spawnRequests: 10_000,
  /** One registration of a spawned singleton, encoded, with its props. */
  spawnBytes: 64 * 1024,
  /** All registrations together, with what each member's record says about them: they are part of every gossip message. */
  registrationsBytes: 2 * 1024 * 1024,
  /** What one host has accepted and not handled, of all senders together; beyond it senders are asked to wait. */
  hostHeldMessages: 1_000_000,
  hostHeldBytes: 256 * 1024 * 1024,
  /** How long a leaving node waits for the acknowledgement of what it has sent to singletons. */
  leaveAcknowledgeMs: 2_000,
  /** Attempts to become host, of one singleton, that a node remembers as given up. */
  attemptsGivenUp: 64,
  /** How far an epoch may be ahead of what is known, or of the wall clock in milliseconds. */
  epochJump: 2 ** 45,
  /** Largest `maxHandOverStateBytes`; the state travels in chunks. */
  handOverStateBytes: 256 * 1024 * 1024,
  handOverChunkBytes: 256 * 1024,
  /** Actors of this node that one peer may watch at a time. */
  watchesPerPeer: 100_000,
  /** Characters of an actor's path from outside. */
  pathChars: 4_096,
  /** Callers from outside (`Cluster.connect`) with a proven token, per node; more get 503. */
  callers: 1_000,
  /** Callers that have not proved a token yet, per node; one more ends the oldest of them. */
  callerHandshakes: 128,
  /** Entries of `ClusterOptions.callers`; tokens of one entry; singletons one entry names. */
  callerGrants: 32,
  callerTokens: 8,
  callerRateMax: 100_000,
  /** How long a host remembers what it handled for a caller that it hears nothing of. */
  callerGraceMs: 10 * 60_000,
  /** Callers a node remembers: their way back, and per singleton their duplicate filters. */
  callersRemembered: 5_000,
  /**
   * What all actors of a node, singletons apart, hold of what other nodes told them and have not handled; and how much of it
   * may come from one peer. Beyond it what comes is a dead letter. Bytes as they were encoded.
   */
  remoteMailMessages: 1_000_000,
  remoteMailBytes: 256 * 1024 * 1024,
  remoteMailPeerMessages: 500_000,
  remoteMailPeerBytes: 128 * 1024 * 1024,
  /** Messages in one mailbox from which on a warning is logged. */
  mailboxWarning: 10_000,
  /** Messages one actor may stash, unless its spawn options say otherwise. */
  stash: 1_000,
  /** An actor that is stopped while its `preStart` does not settle is given up after this. */
  startAbandonMs: 5_000,
  /** Entries of one node's seed list. */
  seeds: 64,
  /** Actor kinds a node registers. */
  kinds: 1_000,
  /** Older or newer secrets that a node accepts beside its own. */
  secretsAccepted: 8,
  /** The owner of a lease: an address and a uid. */
  leaseOwnerChars: 512,
  /** Lease names a voter of the quorum lease keeps apart. */
  leaseNames: 10_000,
  /** Voters of the quorum lease. */
  leaseVoters: 31,
  /** Bytes of one answer of a lease's backend; characters of what it is asked with. */
  leaseAnswerChars: 1024 * 1024,
  /** Endpoints of one etcd cluster. */
  etcdEndpoints: 16,
  /** Milliseconds a node that leaves or is down waits for its leases to be released. */
  leaseReleaseMs: 5_000,
  roles: 32,
  seedAnswerBytes: 256 * 1024,
  httpBodyBytes: 64 * 1024,
  /** Of a file that holds a secret, a token or certificates. */
  textFileBytes: 1024 * 1024,
  /** Pieces in which a body may come, and one more for each of so many bytes. */
  bodyPieces: 1_024,
  bodyPieceBytes: 512,
  /** One answer of a node to the command line tool. */
  cliAnswerBytes: 64 * 1024 * 1024,
  /** Cluster events kept for readers of `/cluster/events` that reconnect. */
  httpEventsKept: 1_000,
  /** Readers of `/cluster/events` at once; more get 503. */
  httpEventClients: 64,
  /** Bytes waiting for one reader; a slower one is cut off and resumes where it was. */
  httpEventClientBytes: 256 * 1024,
  httpEventHeartbeatMs: 15_000,
  httpTokenChars: 4_096,
  /** Jobs in the table of the ready-made job scheduler. */
  jobs: 10_000,
  jobIdChars: 128,
  /** Shortest and longest period of a job. */
  jobPeriodMinMs: 10,
  jobPeriodMaxMs: 366 * 24 * 60 * 60 * 1000,
  /** Calls to job targets in flight at once (Bun's `fetch` allows 256 per process, and the node needs some itself). */
  jobConcurrency: 224,
  /** Of these, for jobs whose last call was slow, and for jobs that have not ended a call yet; and of each, for one URL. */
  jobSlowConcurrency: 64,
  jobSlowPerTarget: 16,
  jobNewConcurrency: 128,
  jobNewPerTarget: 32,
  /** A call that took longer makes its job a slow one. */
  jobSlowMs: 1_000,
  jobTimeoutMs: 5_000,
  /** How long a stopping scheduler waits for calls in flight before it cuts them off. */
  jobDrainMs: 2_000,
  /** Bytes of an answer of a job's target that are read before the rest is cut off. */
  jobAnswerBytes: 64 * 1024,
  /** The table of a full scheduler, as it is handed over. */
  jobTableBytes: 32 * 1024 * 1024,
  /** A durable scheduler saves a snapshot when it has written this many rows since the last, or four times its jobs. */
  jobRowsPerSnapshot: 2_000,
  /** A segment of its file journal. */
  jobSegmentBytes: 1024 * 1024,
  /** Longest wait between two attempts to use a store that fails. */
  jobStoreRetryMs: 5_000,
  /** Jobs in one answer of `GET /jobs`. */
  jobsPerPage: 1_000,
  /** Characters of a persistence id, and of a tag; tags of one event; events in one atomic append. */
  persistenceIdChars: 255,
  tagChars: 255,
  tagsPerEvent: 64,
  eventsPerAppend: 10_000,
  /** One append of a journal, encoded: all its events together. */
  appendBytes: 64 * 1024 * 1024,
  /** Milliseconds that a database client may take for a statement. */
  databaseAnswerMs: 60_000,
  /** What a reader fetches from a database at a time; one event at least. */
  journalPageBytes: 4 * 1024 * 1024,
  /** One snapshot, or one durable state, encoded. */
  snapshotBytes: 256 * 1024 * 1024,
  /** Events that are replayed before other actors get their turn. */
  replayBatch: 256,
  /** Appends of a file journal that wait for their fsync; more are refused. */
  journalQueue: 100_000,
  /** Appends in one write of a file journal, and its bytes; what is more goes into the next. */
  journalGroup: 10_000,
  journalGroupBytes: 8 * 1024 * 1024,
  /** A file journal begins a new segment when the present one has grown to this. */
  journalSegmentBytes: 64 * 1024 * 1024,
} as const))();

export const limits: typeof coreLimits & typeof others = /* @__PURE__ */ Object.assign({}, coreLimits, others);
