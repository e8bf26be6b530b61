/** What is fuzzed: each takes one input made by a grammar, and throws when the code did what it must not do. */
import { FrameReader as WsFrameReader } from '../../adapters/shared/ws_client_frames.ts';
import { parseCommandLine } from '../../cli/arguments.ts';
import { commands, commonFlags, remoteFlags } from '../../cli/commands.ts';
import { parseJob } from '../../node/job_definition.ts';
import { parseFlags } from '../../node/flags.ts';
import { readFromCaller, readToCaller, readToHost } from '../../src/callers/messages.ts';
import { decodeDigest, decodeGossip, encodeGossip } from '../../src/cluster/gossip_codec.ts';
import type { Membership } from '../../src/cluster/membership_state.ts';
import { step } from '../../src/cluster/membership.ts';
import { targetOf, tellOf, terminatedOf } from '../../src/cluster/remote_messages.ts';
import { WireError } from '../../src/cluster/wire_checks.ts';
import { isProblem } from '../../src/http/answers.ts';
import { checkAddress, readFields } from '../../src/http/request_body.ts';
import * as messages from '../../src/singleton/messages.ts';
import { readRegistration } from '../../src/singleton/spawn_registration.ts';
import { parseAddress } from '../../src/transport/address.ts';
import { initialHandshake, stepHandshake } from '../../src/transport/handshake.ts';
import { decodeHandshakeFrame, encodeHello, encodeProof, type Hello } from '../../src/transport/hello.ts';
import { parseSeedAnswer, seedUrl } from '../../src/transport/seed_query.ts';
import { noSecret } from '../../src/transport/secret_keys.ts';
import { Codec } from '../../src/wire/codec.ts';
import { codes } from '../../src/wire/codes.ts';
import { DecodeError, FrameError, SerializationError } from '../../src/wire/errors.ts';
import { type Envelope, FrameReader, FrameWriter, linkFrame } from '../../src/wire/frames.ts';
import { gossip, membership, peer, record } from '../cluster/support/gossip_samples.ts';
import { callersHandshake } from './caller_handshake.ts';
import { sealedFrames } from './sealed_frames.ts';
import type { Source } from './source.ts';

export interface Target {
  readonly name: string;
  /** Inputs out of a hundred. */
  readonly share: number;
  readonly run: (source: Source) => void | Promise<void>;
}

/** Runs it, and lets through nothing but the errors that it may answer with. */
function allowing(run: () => unknown, ...allowed: readonly (new (...args: any[]) => Error)[]): void {
  try {
    run();
  } catch (error) {
    if (!allowed.some((type) => error instanceof type)) throw error;
  }
}

function helloOf(source: Source): Hello {
  return {
    side: source.pick(['initiator', 'responder']),
    secured: source.chance(2),
    integrity: source.chance(2),
    clusterName: source.chance(3) ? source.text() : 'c',
    address: source.chance(3) ? source.text() : '127.0.0.1:1',
    uid: source.chance(3) ? source.text() : 'a',
    runtime: source.chance(3) ? source.text() : 'bun',
    roles: source.list(3, () => source.text()),
    nonce: source.chance(6) ? source.bytes(40) : new Uint8Array(32).fill(source.int(4)),
  };
}

function handshake(source: Source): void {
  const own: Hello = { ...ownHello, side: source.pick(['initiator', 'responder']), integrity: source.chance(2) };
  let state = initialHandshake;
  for (let turns = 1 + source.int(4); turns > 0; turns--) {
    const bytes = source.chance(3)
      ? source.bytes(60)
      : source.damaged(source.chance(3) ? encodeProof(source.bytes(40)) : encodeHello(helloOf(source)));
    decodeHandshakeFrame(bytes);
    const after = stepHandshake({ own, dialled: undefined }, state, { kind: 'frame', bytes });
    state = after.state;
    if (after.effects.some(({ kind }) => kind === 'established')) throw new Error('a link without a proof');
    if (source.chance(3)) {
      state = stepHandshake({ own, dialled: undefined }, state, { kind: 'verified', secret: noSecret }).state;
    }
  }
}

const ownHello: Hello = {
  side: 'responder',
  secured: true,
  integrity: false,
  clusterName: 'c',
  address: '127.0.0.1:2',
  uid: 'b',
  runtime: 'bun',
  roles: [],
  nonce: new Uint8Array(32).fill(9),
};

const codec = new Codec({
  refs: { toWire: () => undefined, fromWire: (wire) => ({ wire }) },
});
const codeValues = Object.values(codes);

function envelope(source: Source): Envelope {
  return [
    source.chance(8) ? source.number() : source.pick(codeValues),
    ...source.list(7, () => source.value(2)),
  ] as Envelope;
}

function encoded(source: Source, value: unknown): Uint8Array {
  try {
    return codec.encode(value);
  } catch (error) {
    if (!(error instanceof SerializationError)) throw error;
    return source.bytes(30);
  }
}

function frames(source: Source): void {
  const reader = new FrameReader(codec);
  for (let turns = 1 + source.int(3); turns > 0; turns--) {
    let bytes: Uint8Array;
    if (source.chance(5)) {
      bytes = Uint8Array.from([0x53, source.int(3), source.int(3), source.int(8), ...source.bytes(40)]);
    } else if (source.chance(8)) bytes = linkFrame('use', source.int(2 ** 31));
    else {
      const writer = new FrameWriter(source.pick(['system', 'user']));
      for (let count = 1 + source.int(3); count > 0; count--) writer.append(encoded(source, envelope(source)));
      bytes = writer.take();
    }
    allowing(() => reader.read(source.damaged(bytes)), FrameError);
  }
}

function values(source: Source): void {
  const value = source.value(5);
  const bytes = encoded(source, value);
  allowing(() => codec.decode(bytes), FrameError, DecodeError);
  allowing(() => codec.decode(source.damaged(bytes)), FrameError, DecodeError);
  if (Object.keys(Object.prototype).length > 0) throw new Error('a prototype was polluted');
}

const known = gossip(record('a', 'up', 1), record('b', 'up', 2), record('c', 'joining'));
const member: Membership = membership('b', known);

/** Honest gossip with some of its fields exchanged for others. */
function gossiped(source: Source): void {
  const honest = structuredClone(encodeGossip(known, ['a'], [])) as unknown[];
  const change = (node: unknown, depth: number): unknown => {
    if (source.chance(depth === 0 ? 60 : 14)) return source.value(2);
    if (Array.isArray(node)) return node.map((each) => change(each, depth + 1));
    if (typeof node === 'number' && source.chance(6)) return node + source.pick([1, -1, 10, 2_000_000]);
    if (typeof node === 'string' && source.chance(6)) {
      return source.pick(['a', 'b', 'd', 'down', 'leaving', 'up', '10.0.0.4:1']);
    }
    return node;
  };
  const fields = source.chance(20) ? source.value(4) : change(honest, 0);
  const decoded = decodeGossip(fields, 0);
  if ('value' in decoded) {
    const after = step(member, { kind: 'gossip', from: peer(source.pick(['a', 'c', 'x'])), message: decoded.value }, 1);
    const self = after.state.gossip.records.get('b');
    if (self !== undefined && self.roles.length > 0) throw new Error('somebody else changed the roles of this node');
  }
  decodeDigest(source.mostly('cluster'), source.mostly('0123456789abcdef'), source.mostly(['a']));
}

const readers: readonly ((envelope: Envelope) => unknown)[] = [
  messages.readRequest,
  messages.readWithdraw,
  (each) => messages.readAnswer(each, 0),
  messages.readChunk,
  messages.readMore,
  messages.readOpen,
  messages.readOpened,
  messages.readAcknowledge,
  messages.readRefuse,
  tellOf,
  targetOf,
  terminatedOf,
  readFromCaller,
  readToCaller,
  readToHost,
];

const bases: readonly ((source: Source) => Envelope)[] = [
  () => messages.requestEnvelope({ name: 'counter', nonce: 'n', epoch: 1 }),
  () => messages.openEnvelope({ name: 'counter', base: 1, next: 5, lastSentEpoch: 1, repeat: false } as never),
  () => messages.acknowledgeEnvelope({ name: 'counter', prefix: 1, others: [3, 4] } as never),
  () => messages.chunkEnvelope({ name: 'counter', nonce: 'n', index: 0, bytes: new Uint8Array(3) }),
  (
    source,
  ) => [codes.handOverAnswer, 'counter', 'n', 1, 1, source.int(5), [2, 1, 'h:1', [['u', 3, [5]]], ['u']], 0, 3, 7],
  () => [codes.streamOpened, 'counter', 5, 4, 1, 3, 2, [4]],
  (source) => [source.pick([codes.hello, codes.use, codes.told, codes.open]), 'h', 'counter', 1, 1, 0, false],
  () => [codes.tell, '/user/a', ['/user/b', 1], 'x', 0],
];

function handOver(source: Source): void {
  const base = source.chance(5) ? envelope(source) : source.pick(bases)(source);
  const fields = base.map((field) => source.mostly(field, 5)) as unknown as Envelope;
  for (const read of readers) allowing(() => read(fields), WireError);
  const key = source.pick(['spawn/a', 'x', source.text()]);
  readRegistration({ key, version: 1, by: 'u', value: source.mostly(['kind', 'role', null, {}], 4) });
}

async function bodies(source: Source): Promise<void> {
  const honest = JSON.stringify({ address: source.text(), to: source.text() });
  const body = source.chance(3)
    ? source.damaged(new TextEncoder().encode(honest))
    : source.chance(2)
    ? JSON.stringify(source.object(3), (_key, value) => typeof value === 'bigint' ? String(value) : value)
    : source.bytes(60);
  const answer = await readFields(new Request('http://x/', { method: 'POST', body }), ['address', 'to']);
  if (!isProblem(answer)) {
    const { address } = answer.fields;
    if (checkAddress('address', address) === undefined && parseAddress(address ?? '') === undefined) {
      throw new Error(`an address that is none: ${JSON.stringify(address)}`);
    }
  }
  parseJob(
    source.chance(3) ? source.value(3) : {
      id: source.mostly('job', 3),
      everyMs: source.mostly(1_000, 3),
      url: source.mostly('http://x/', 3),
      ...(source.chance(4) ? { at: source.mostly(1, 2) } : {}),
    },
  );
}

function seeds(source: Source): void {
  const honest = {
    clusterName: source.mostly('c', 6),
    protocol: source.mostly(1, 6),
    fingerprint: source.mostly('f', 6),
    address: source.mostly('h:1', 6),
    uid: source.mostly('u', 6),
    clusterId: source.mostly('id', 6),
    formedAt: source.mostly(5, 6),
    members: source.mostly(['h:1'], 6),
  };
  const text = JSON.stringify(honest, (_key, value) => typeof value === 'bigint' ? String(value) : value);
  parseSeedAnswer(source.chance(3) ? new TextDecoder().decode(source.damaged(new TextEncoder().encode(text))) : text);
  seedUrl(source.text(), source.chance(2));
}

const nodeFlags = [
  '--host',
  '--port',
  '--seeds',
  '--roles',
  '--name',
  '--secret',
  '--token',
  '--form',
  '--journal',
  '--postgres',
  '--postgres-file',
  '--log-level',
  '--help',
];
const cliFlags = [...commands.flatMap(({ flags }) => flags), ...remoteFlags, ...commonFlags].map(({ name }) =>
  `--${name}`
);

function flags(source: Source): void {
  const words = (names: readonly string[]) =>
    source.list(
      8,
      () => source.chance(2) ? `${source.pick(names)}${source.chance(3) ? `=${source.text()}` : ''}` : source.text(),
    );
  const parsed = parseFlags(words(nodeFlags));
  if (parsed.kind === 'wrong' && /\p{Cc}/u.test(parsed.line)) {
    throw new Error(`two lines: ${JSON.stringify(parsed.line)}`);
  }
  const command = source.chance(8) ? [source.text()] : source.pick(commands).name.split(' ');
  const line = parseCommandLine([...command, ...words(cliFlags)]);
  if (line.kind === 'wrong' && /\p{Cc}/u.test(line.line)) {
    throw new Error(`two lines: ${JSON.stringify(line.line)}`);
  }
}

function webSocket(source: Source): void {
  let given = 0;
  const reader = new WsFrameReader(1_000, (event) => {
    if (event.kind === 'binary' && (given += event.bytes.length) > 100_000) {
      throw new Error('more came out than went in');
    }
  });
  for (let turns = 1 + source.int(5); turns > 0; turns--) {
    const payload = source.bytes(source.chance(10) ? 1_200 : 20);
    const size = payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 255];
    const head = [(source.chance(2) ? 0x80 : 0) | source.pick([0, 1, 2, 8, 9, 10, 3, 0x42]), ...size];
    const bytes = source.damaged(Uint8Array.from([...head, ...payload]));
    const cut = source.int(bytes.length + 1);
    for (const part of [bytes.slice(0, cut), bytes.slice(cut)]) reader.push(part);
  }
}

export const targets: readonly Target[] = [
  { name: 'handshake', share: 13, run: handshake },
  { name: 'frames', share: 13, run: frames },
  { name: 'values', share: 10, run: values },
  { name: 'gossip', share: 13, run: gossiped },
  { name: 'hand-over', share: 13, run: handOver },
  { name: 'caller handshake', share: 6, run: callersHandshake },
  { name: 'sealed frames', share: 6, run: sealedFrames },
  { name: 'http bodies', share: 6, run: bodies },
  { name: 'seed answers', share: 6, run: seeds },
  { name: 'flags', share: 7, run: flags },
  { name: 'web socket frames', share: 7, run: webSocket },
];
