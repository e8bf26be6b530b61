/**
 * Checks the structure of CBOR bytes from outside before anything is decoded: RFC 8949 well-formedness narrowed to what
 * our own encoder writes. One linear pass, no recursion, nothing allocated from a length that was only claimed.
 */
import { limits } from '../limits.ts';
import { FrameError } from './errors.ts';
import { EXTENSION_TAG } from './extension.ts';

export { EXTENSION_TAG };

const ANY = -1;
const BYTES = 2;
const ARRAY = 4;
const MAP = 5;
const TAG = 6;

/** Tags a sender may use, each with the major type its content must have. Record and packing tags are not among them. */
const allowedTags: ReadonlyMap<number, number> = new Map([
  [1, ANY],
  [258, ARRAY],
  [259, MAP],
  [EXTENSION_TAG, ARRAY],
  ...[64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 77, 78, 79, 81, 82, 85, 86].map((tag) => [tag, BYTES] as const),
]);

/** Members still to come, per open container. One scan runs at a time and never calls out. */
const pending = new Float64Array(limits.depth + 1);

/**
 * The end of the CBOR item that starts at `start`.
 * @throws FrameError if the item is malformed, truncated, deeper than `limits.depth` or larger than `limits.itemsPerFrame`.
 */
export function scanItem(bytes: Uint8Array, start: number, end: number): number {
  let position = start;
  let depth = 0;
  let items = 0;
  for (;;) {
    if (position >= end) throw new FrameError('truncated', 'the bytes end inside a value');
    if (++items > limits.itemsPerFrame) {
      throw new FrameError('too-many-items', `a message has more than ${limits.itemsPerFrame} items`);
    }
    const head = bytes[position++]!;
    const major = head >> 5;
    const info = head & 0x1f;
    const width = widthOf(info, major);
    if (position + width > end) throw new FrameError('truncated', 'the bytes end inside a value');
    let members = 0;
    if (major >= 2 && major !== 7) {
      const argument = width === 0 ? info : readArgument(bytes, position, width);
      position += width;
      members = membersOf(bytes, position, end, major, argument);
      if (major < ARRAY) position += argument;
    } else {
      if (major === 7) checkSimple(info);
      position += width;
    }
    if (members > 0) {
      if (depth >= limits.depth) throw new FrameError('too-deep', `a message is nested deeper than ${limits.depth}`);
      pending[depth++] = members;
      continue;
    }
    while (depth > 0 && --pending[depth - 1]! === 0) depth--;
    if (depth === 0) return position;
  }
}

/** Bytes that follow the head and hold its argument. */
function widthOf(info: number, major: number): number {
  if (info < 24) return 0;
  if (info > 27) {
    throw new FrameError('encoding', info === 31 ? 'indefinite lengths are refused' : `reserved head ${info}`);
  }
  if (info === 27 && major >= 2 && major !== 7) throw new FrameError('length', '64-bit lengths and tags are refused');
  return 1 << (info - 24);
}

function readArgument(bytes: Uint8Array, position: number, width: number): number {
  let argument = 0;
  for (let i = 0; i < width; i++) argument = argument * 256 + bytes[position + i]!;
  return argument;
}

/** How many items must follow inside this one; refuses claims that the remaining bytes cannot hold. */
function membersOf(bytes: Uint8Array, position: number, end: number, major: number, argument: number): number {
  if (major === TAG) {
    const content = allowedTags.get(argument);
    if (content === undefined) throw new FrameError('tag', `tag ${argument} is refused`);
    if (content !== ANY && (position >= end || bytes[position]! >> 5 !== content)) {
      throw new FrameError('tag', `tag ${argument} has content of another type`);
    }
    return 1;
  }
  const members = major === MAP ? argument * 2 : argument;
  if (members > end - position) {
    throw new FrameError('length', `a length of ${argument} exceeds the bytes that are there`);
  }
  return major < ARRAY ? 0 : members;
}

/** false, true, null, undefined and the three floats; packed references and other simple values are refused. */
function checkSimple(info: number): void {
  if (info < 20 || info === 24) throw new FrameError('simple-value', `simple value ${info} is refused`);
}

/**
 * The ends of all items of a CBOR sequence.
 * @throws FrameError like `scanItem`
 */
export function scanSequence(bytes: Uint8Array, start: number, end: number): number[] {
  const ends: number[] = [];
  for (let position = start; position < end;) {
    position = scanItem(bytes, position, end);
    ends.push(position);
  }
  return ends;
}
