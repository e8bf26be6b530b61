/** Frame integrity on both ends of a connection, with an attacker on the path: nothing is handed on but what was sent, in order. */
import { anyNode } from '../../src/transport/caller_initiator.ts';
import type { HandshakeMachine, Transcript } from '../../src/transport/handshake.ts';
import { ownerFailedCode, sealBytes } from '../../src/transport/protocol.ts';
import { brokenSealCode } from '../../src/transport/sealed_socket.ts';
import { importSecret, ownSecret, type SecretKeys } from '../../src/transport/secret_keys.ts';
import { Session } from '../../src/transport/session.ts';
import { Background } from './background.ts';
import type { Source } from './source.ts';
import { content, End, randomBytes, same, tampered } from './wire.ts';

/** Over at once: what follows a handshake is looked at here. */
function shortHandshake(dialled: boolean, messages: Transcript): HandshakeMachine {
  return {
    dialled,
    feed(event) {
      if (event.kind === 'opened') return [{ kind: 'derive', secret: ownSecret, messages }];
      return event.kind === 'derived' ? [{ kind: 'established', peer: anyNode }] : [];
    },
  };
}

/** A sealed frame of another connection under the same secret. */
async function earlierFrame(background: Background, keys: SecretKeys): Promise<Uint8Array> {
  const [out, incoming] = [Uint8Array.of(1), Uint8Array.of(2)];
  let sealed: Uint8Array | undefined;
  keys.frameKeys(ownSecret, { out, in: incoming }).then((each) => each.seal(Uint8Array.of(3), 0)).then((bytes) =>
    sealed = bytes
  );
  await background.settled('a frame of another connection', () => sealed !== undefined);
  return sealed!;
}

/** A side of the connection. Its owner fails on frame `failsAt`. */
function endOf(dialled: boolean, messages: Transcript, keys: SecretKeys, failsAt: number): End {
  const end = new End(dialled ? 'who dialled' : 'who was dialled');
  new Session(end.wire, shortHandshake(dialled, messages), keys, end.environment, {
    established: (_session, link) => void end.links.push(link),
    failed: () => void (end.failed += 1),
    frame: (_link, bytes) => {
      if (end.heard.push(bytes.slice()) === failsAt) throw new Error('the owner fails');
    },
    closed: (_link, close) => void end.closed.push(close),
    ended: () => {},
  });
  return end;
}

/** Frames over its link, and now and then a close behind them, or a runtime that drops one. */
async function talk(source: Source, background: Background, end: End): Promise<void> {
  const drops = source.chance(25);
  const saying = source.list(6, () => content(source));
  for (const bytes of saying) end.say(bytes);
  if (drops) end.wire.takes = false;
  const leaves = source.chance(6);
  if (leaves) end.leave(1000);
  await background.settled(
    `${end.name} has sent`,
    () => end.over || end.wire.closing !== undefined || (!leaves && end.wire.sent.length === end.said.length),
  );
  end.wire.takes = true;
  const { closing } = end.wire;
  if (leaves && closing?.code === 1000 && !drops && closing.afterFrames !== end.said.length) {
    throw new Error(`${end.name} closed before its frames were out`);
  }
}

/** Hands it the frames that the other side has sent, or something else; the connection may end in between. */
async function carry(
  source: Source,
  background: Background,
  from: End,
  to: End,
  others: readonly Uint8Array[],
): Promise<void> {
  const frames = tampered(source, from.wire.sent, others);
  const endsAt = source.chance(3) ? source.int(frames.length + 1) : frames.length;
  const waits = source.chance(2);
  for (const [index, bytes] of frames.entries()) {
    if (index === endsAt) to.wire.end(source.pick([1000, 1006, 4112]));
    to.wire.deliver(bytes);
    if (waits && source.chance(2)) await settledIn(background, to);
  }
  await settledIn(background, to);
}

function settledIn(background: Background, end: End): Promise<void> {
  const { wire } = end;
  return background.settled(
    `${end.name} has checked`,
    () => end.over || end.left || (wire.deliveredAtEnd === undefined && end.heard.length >= wire.delivered.length),
  );
}

/** What was sealed for it, from the first frame on, in what it was given before the connection's end. */
function check(end: End, from: End, failsAt: number): void {
  end.checkTold();
  end.checkHeard(from.said);
  const { delivered, deliveredAtEnd, closing } = end.wire;
  const given = delivered.slice(0, deliveredAtEnd);
  const foreign = given.findIndex((bytes, index) => !same(bytes, from.wire.sent[index]));
  const authentic = foreign < 0 ? delivered.length : foreign;
  if (end.heard.length > authentic) throw new Error(`${end.name} handed on more than was authentic`);
  const [close] = end.closed;
  if (end.links.length === 0 || end.left || close?.code === 4500) return;
  if (end.heard.length >= failsAt) {
    if (closing?.code !== ownerFailedCode && closing?.code !== brokenSealCode) {
      throw new Error('a failed owner goes on');
    }
  } else if (foreign >= 0) {
    if (close?.code !== brokenSealCode || close.clean || closing?.code !== brokenSealCode) {
      throw new Error(`${end.name} took a forged frame for ${JSON.stringify(close)}`);
    }
  } else if (end.heard.length < given.length && delivered.length === given.length) {
    throw new Error(`${end.name} lost an authentic frame`);
  }
  for (const [index, bytes] of end.wire.sent.entries()) {
    if (bytes.length !== end.said[index]!.length + sealBytes) {
      throw new Error(`${end.name} sent a frame without a seal`);
    }
  }
}

export function sealedFrames(source: Source): Promise<void> {
  return Background.during(source, (background) => connection(source, background));
}

async function connection(source: Source, background: Background): Promise<void> {
  const keys = await importSecret('a secret for fuzzing');
  const earlier = await earlierFrame(background, keys);
  const [initiator, responder] = [Uint8Array.of(1, ...randomBytes(source, 8)), Uint8Array.of(2)];
  const messages = { initiator, responder, hellos: [initiator, responder] } as unknown as Transcript;
  const failsAt = source.chance(10) ? 1 + source.int(4) : Infinity;
  const dials = source.chance(2);
  const first = endOf(dials, messages, keys, Infinity);
  await background.settled('the first side is open', () => first.links.length === 1);
  await talk(source, background, first);
  const second = endOf(!dials, messages, keys, failsAt);
  // Its keys may be still on their way when the first frames come.
  if (source.chance(2)) await background.settled('the second side is open', () => second.links.length === 1);
  await carry(source, background, first, second, [earlier]);
  if (second.links.length === 1 && !second.over) await talk(source, background, second);
  await carry(source, background, second, first, [earlier, ...first.wire.sent]);
  for (const end of [first, second]) end.wire.end();
  await background.settled('both ends are told', () => first.over && second.over);
  await background.drained();
  check(first, second, Infinity);
  check(second, first, failsAt);
}
