/** A caller and a node with an attacker between them: who has a link shares it with the other, and hears what the other said. */
import { createHmac } from 'node:crypto';
import { webSocketDial } from '../../src/callers/dial.ts';
import { limits } from '../../src/limits.ts';
import { callerHello, keyBytes, nodeHello, proofFrame } from '../../src/transport/caller_handshake.ts';
import { callerResponder } from '../../src/transport/caller_responder.ts';
import { macBytes, nonceBytes, sealBytes } from '../../src/transport/protocol.ts';
import { importKey } from '../../src/transport/secret_keys.ts';
import { Session } from '../../src/transport/session.ts';
import { TokenKeys } from '../../src/transport/token_keys.ts';
import { Background } from './background.ts';
import type { Source } from './source.ts';
import { content, End, randomBytes, same } from './wire.ts';

const cluster = 'shop';
const token = 'the-token-of-a-caller';
const wrongToken = 'some-wrong-token-of-nobody';

interface Setup {
  readonly token: CryptoKey;
  readonly tokens: TokenKeys;
  readonly wrong: CryptoKey;
}

async function prepare(): Promise<Setup> {
  return {
    token: await importKey(token),
    tokens: await TokenKeys.import([['another-token-of-a-caller', token]]),
    wrong: await importKey(wrongToken),
  };
}

function nodeEnd(source: Source, tokens: TokenKeys, sealing: boolean): End {
  const end = new End('the node');
  const handshake = callerResponder(cluster, randomBytes(source, nonceBytes), sealing);
  new Session(end.wire, handshake, tokens.proof(), end.environment, {
    established: (_session, link) => void end.links.push(link),
    failed: () => void (end.failed += 1),
    frame: (_link, bytes) => void end.heard.push(bytes.slice()),
    closed: (_link, close) => void end.closed.push(close),
    ended: () => {},
  });
  return end;
}

function callerEnd(source: Source, token: CryptoKey, sealing: boolean): End {
  const end = new End('the caller');
  const dial = webSocketDial({
    runtime: {
      randomBytes: (length) => randomBytes(source, length),
      dial: (_options, done) => {
        done(end.wire);
        return () => {};
      },
    },
    environment: end.environment,
    token,
    clusterName: source.chance(2) ? undefined : source.chance(12) ? source.text() : cluster,
    ca: undefined,
    frameIntegrity: sealing,
  });
  dial('ws://node.example', {
    opened: (link) => void end.links.push(link),
    failed: () => void (end.failed += 1),
    frame: (_link, bytes) => void end.heard.push(bytes.slice()),
    closed: (_link, close) => void end.closed.push(close),
  });
  return end;
}

/** The caller's hello is out before it has heard anything. */
const sentAfterHello = { 'the caller': 2, 'the node': 1 } as Readonly<Record<string, number>>;

/** It has done what the frames that it was given can make it do. */
function idle(end: End): boolean {
  const { wire, links, heard } = end;
  if (end.over || end.left) return true;
  if (wire.deliveredAtEnd !== undefined) return false;
  if (links.length > 0) return heard.length >= wire.delivered.length - 2;
  return wire.delivered.length === 0 ||
    (wire.delivered.length === 1 && wire.sent.length === sentAfterHello[end.name]);
}

/** A frame that the other side has not sent so. */
function invented(source: Source, ends: readonly End[], next?: Uint8Array): Uint8Array {
  const known = ends.flatMap(({ wire }) => wire.sent);
  const nonce = randomBytes(source, nonceBytes);
  const name = source.chance(2) ? cluster : source.chance(3) ? source.text() : '';
  switch (source.int(8)) {
    case 0:
      return source.bytes(60);
    case 1:
      return callerHello(nonce, randomBytes(source, keyBytes), name, source.chance(2));
    case 2:
      return nodeHello(nonce, name, source.chance(2));
    case 3:
      return proofFrame(source.chance(2) ? randomBytes(source, macBytes) : source.bytes(40));
    case 4:
      return proofFrame(new Uint8Array(createHmac('sha256', wrongToken).update(nonce).digest()));
    case 5:
      return source.chance(20) ? new Uint8Array(limits.frameBytes + sealBytes) : new Uint8Array(source.int(2_000));
    case 6:
      return known.length === 0 ? nonce : source.pick(known);
    default:
      return source.damaged(next ?? nonce);
  }
}

/** One thing that happens: mostly the next frame of the other side, as it was sent. */
function turn(source: Source, to: End, from: End): void {
  const next = from.wire.sent[to.wire.delivered.length];
  if (!source.chance(9)) {
    if (next !== undefined) return to.wire.deliver(next);
    return to.say(content(source));
  }
  switch (source.int(12)) {
    case 0:
      return to.runTimers();
    case 1:
      return to.wire.end(source.pick([1000, 1006, 4407, 4112]));
    case 2:
      return to.leave(1000);
    case 3: {
      const many = source.chance(4) ? 300 : source.int(70);
      const bytes = source.chance(30) ? new Uint8Array(limits.frameBytes / 4) : source.bytes(20);
      for (let count = 0; count < many && !to.over; count++) to.wire.deliver(bytes);
      return;
    }
    default:
      return to.wire.deliver(invented(source, [to, from], next));
  }
}

function check(end: End, other: End, sealing: boolean): void {
  end.checkTold();
  const { delivered } = end.wire;
  if (end.links.length === 0) return end.checkHeard([]);
  const whole = same(delivered[0]!, other.wire.sent[0]) && same(delivered[1]!, other.wire.sent[1]) &&
    same(other.wire.delivered[0]!, end.wire.sent[0]);
  if (!whole) throw new Error(`${end.name} has a link without a proof`);
  end.checkHeard(sealing ? other.said : delivered.slice(2));
  end.wire.sent.slice(2).forEach((bytes, index) => {
    const said = end.said[index]!;
    if (bytes.length !== said.length + (sealing ? sealBytes : 0)) {
      throw new Error(`${end.name}: a frame with a wrong seal`);
    }
  });
}

export function callersHandshake(source: Source): Promise<void> {
  return Background.during(source, (background) => connection(source, background));
}

async function connection(source: Source, background: Background): Promise<void> {
  const prepared = await prepare();
  const [nodeSeals, callerSeals] = [source.chance(2), source.chance(2)];
  const node = nodeEnd(source, prepared.tokens, nodeSeals);
  const caller = callerEnd(source, source.chance(12) ? prepared.wrong : prepared.token, callerSeals);
  for (let turns = 4 + source.int(16); turns > 0 && !(node.over && caller.over); turns--) {
    const [to, from] = source.chance(2) ? [node, caller] : [caller, node];
    turn(source, to, from);
    if (!source.chance(5)) await background.settled('both are idle', () => idle(node) && idle(caller));
  }
  await background.settled('both are idle', () => idle(node) && idle(caller));
  for (const end of [node, caller]) end.wire.end();
  await background.settled('both ends are told', () => node.over && caller.over);
  await background.drained();
  check(node, caller, nodeSeals || callerSeals);
  check(caller, node, nodeSeals || callerSeals);
}
