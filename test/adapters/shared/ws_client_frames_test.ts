import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { type FrameEvent, FrameReader } from '../../../adapters/shared/ws_client_frames.ts';
import { frame } from '../../contract/raw_peer.ts';

const limit = 200_000;

/** A frame of a server; `first` overrides the byte with the final bit, the reserved bits and the opcode. */
function served(opcode: number, payload: Uint8Array, first = 0x80 | opcode): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(frame(opcode, payload, false));
  bytes[0] = first;
  return bytes;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

function counted(size: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: size }, (_, i) => (i * 7 + (i >> 8)) & 255);
}

/** Reads in pieces of `step` bytes out of one reused buffer, as a socket does. */
function read(bytes: Uint8Array, step = bytes.length, max = limit): FrameEvent[] {
  const events: FrameEvent[] = [];
  const reader = new FrameReader(max, (event) => void events.push(event));
  const buffer = new Uint8Array(Math.max(1, step));
  for (let at = 0; at < bytes.length; at += step) {
    const piece = bytes.subarray(at, at + step);
    buffer.fill(0xee);
    buffer.set(piece);
    reader.push(buffer.subarray(0, piece.length));
  }
  return events;
}

const closing = (code: number, reason: Uint8Array | string = '') =>
  served(8, joined(Uint8Array.of(code >> 8, code & 255), typeof reason === 'string' ? utf8(reason) : reason));
const utf8 = (text: string) => new TextEncoder().encode(text);

describe('messages', () => {
  for (const size of [0, 1, 125, 126, 127, 65_535, 65_536, limit]) {
    test(`a frame of ${size} bytes, whole and in pieces`, () => {
      const payload = counted(size);
      const bytes = served(2, payload);
      for (const step of size > 1_000 ? [bytes.length, 4_099] : [bytes.length, 1, 2, 3, 64]) {
        assertEquals(read(bytes, step), [{ kind: 'binary', bytes: payload }]);
      }
    });
  }

  test('several frames in one read, and one over several', () => {
    const bytes = joined(served(2, counted(3)), served(2, counted(0)), served(2, counted(300)), served(1, utf8('x')));
    const expected = [
      { kind: 'binary', bytes: counted(3) },
      { kind: 'binary', bytes: counted(0) },
      { kind: 'binary', bytes: counted(300) },
      { kind: 'text' },
    ];
    for (let step = 1; step <= bytes.length; step += 7) assertEquals<unknown>(read(bytes, step), expected);
  });

  test('fragments are joined, with control frames between them', () => {
    const payload = counted(1_000);
    const bytes = joined(
      served(2, payload.subarray(0, 10), 0x02),
      served(9, utf8('hello')),
      served(0, payload.subarray(10, 600), 0x00),
      served(0, new Uint8Array(0), 0x00),
      served(10, utf8('pong')),
      served(0, payload.subarray(600), 0x80),
      served(2, counted(2)),
    );
    const expected = [
      { kind: 'ping', bytes: utf8('hello') },
      { kind: 'pong' },
      { kind: 'binary', bytes: payload },
      { kind: 'binary', bytes: counted(2) },
    ];
    for (const step of [1, 5, 100, bytes.length]) assertEquals<unknown>(read(bytes, step), expected);
  });

  test('a message of a thousand fragments costs no more than its size', () => {
    const payload = counted(1_000);
    const parts = [...payload].map((byte, i) => served(0, Uint8Array.of(byte), i === 0 ? 2 : i === 999 ? 0x80 : 0));
    assertEquals(read(joined(...parts), 17), [{ kind: 'binary', bytes: payload }]);
  });

  test('a message above the limit is refused at its header, whole or in fragments', () => {
    const header = served(2, new Uint8Array(65_536)).subarray(0, 10);
    assertEquals(read(header, 1, 65_535), [{ kind: 'oversized', bytes: 65_536 }]);
    const huge = Uint8Array.of(0x82, 127, 0x7f, 255, 255, 255, 255, 255, 255, 255);
    assertEquals(read(huge)[0]?.kind, 'oversized');
    const fragments = joined(served(2, counted(60), 0x02), served(0, counted(41), 0x80), served(2, counted(1)));
    assertEquals(read(fragments, 9, 100), [{ kind: 'oversized', bytes: 101 }]);
    assertEquals(read(fragments, 9, 101).map(({ kind }) => kind), ['binary', 'binary']);
  });
});

describe('closes', () => {
  const cases: readonly [string, Uint8Array, FrameEvent | 'violation'][] = [
    ['without a code', served(8, new Uint8Array(0)), { kind: 'close', code: 1005, reason: '' }],
    ['with a code', closing(1000), { kind: 'close', code: 1000, reason: '' }],
    ['with a reason', closing(4999, 'grün'), { kind: 'close', code: 4999, reason: 'grün' }],
    ['of one byte', served(8, Uint8Array.of(3)), 'violation'],
    ['with a reason that is not UTF-8', closing(4000, Uint8Array.of(0xc3)), 'violation'],
    ...[0, 999, 1004, 1005, 1006, 1015, 2999, 5000].map((code) =>
      [`with code ${code}`, closing(code), 'violation'] as const
    ).map(([name, bytes, kind]) => [name, bytes, kind] as [string, Uint8Array, 'violation']),
  ];
  for (const [name, bytes, expected] of cases) {
    test(`a close ${name}; nothing is read behind it`, () => {
      const events = read(joined(bytes, served(2, counted(1))), 3);
      assertEquals(events.length, 1);
      if (expected === 'violation') assertEquals(events[0]?.kind, 'violation');
      else assertEquals(events[0], expected);
    });
  }
});

describe('violations end the reading', () => {
  const cases: Readonly<Record<string, Uint8Array>> = {
    'reserved bit 1': served(2, counted(1), 0xc2),
    'reserved bit 2': served(2, counted(1), 0xa2),
    'reserved bit 3': served(9, counted(1), 0x99),
    'a masked frame': frame(2, counted(5), true),
    'a masked close': frame(8, new Uint8Array(0), true),
    ...Object.fromEntries(
      [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => [`opcode ${opcode}`, served(opcode, counted(1))]),
    ),
    'a continuation first': served(0, counted(1)),
    'a message inside another': joined(served(2, counted(1), 0x02), served(2, counted(1))),
    'a fragmented ping': served(9, counted(1), 0x09),
    'a ping of 126 bytes': served(9, counted(126)),
    'length 125 in two bytes': Uint8Array.of(0x82, 126, 0, 125),
    'length 65535 in eight bytes': Uint8Array.of(0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255),
    'a negative length': Uint8Array.of(0x82, 127, 128, 0, 0, 0, 0, 0, 0, 0),
  };
  for (const [name, bytes] of Object.entries(cases)) {
    test(name, () => {
      for (const step of [1, 1_000]) {
        const events = read(joined(bytes, served(2, counted(1))), step);
        assertEquals(events.map(({ kind }) => kind), ['violation']);
        assert('detail' in (events[0] as object));
      }
    });
  }
});
