import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { SenderStream, type StreamPort, type Transmission } from '../../src/singleton/sender_stream.ts';

const target = { uid: 'h', address: 'h:1', epoch: 1 };
const opened = { target, verdict: 'continued', next: 1, prefix: 0, exceptions: [] } as const;

/** What was sent, what was lost, and what `transmit` and `lost` do besides. */
function streamOf(bufferSize: number, overflow: 'drop-newest' | 'drop-oldest', port: Partial<StreamPort> = {}) {
  const sent: unknown[] = [];
  const lost: unknown[] = [];
  const stream = new SenderStream(bufferSize, 1_000_000, overflow);
  stream.attach({
    weigh: () => 1,
    transmit(...args): Transmission {
      const outcome = port.transmit?.(...args) ?? 1;
      if (typeof outcome === 'number') sent.push(args[2]);
      return outcome;
    },
    lost(message, ...more) {
      lost.push(message);
      port.lost?.(message, ...more);
    },
  });
  return { stream, sent, lost };
}

describe('the line of a sender', () => {
  test('S3: what is told while a dead letter is heard of takes no other message with it', () => {
    const refused = new Set<unknown>(['bad']);
    const { stream, sent, lost } = streamOf(3, 'drop-oldest', {
      transmit: (_target, _seq, message) => refused.has(message) ? { reason: 'unserializable', detail: '' } : 1,
      lost: (message) => {
        if (message === 'bad') stream.tell('told from a dead letter', undefined);
      },
    });
    for (const message of ['bad', 'b', 'c']) stream.tell(message, undefined);
    stream.opened(opened, 'at-most-once');
    assertEquals(lost, ['bad']);
    assertEquals(sent, ['b', 'c', 'told from a dead letter']);
    const { told, deadLettered, buffered } = stream.ledger();
    assertEquals([told, deadLettered, buffered], [4, 1, 3]);
  });

  test('a line of thousands goes out in order, and so does what comes after it', () => {
    const { stream, sent, lost } = streamOf(20_000, 'drop-newest');
    const told: number[] = [];
    const tell = (count: number) => {
      for (let i = 0; i < count; i += 1) {
        told.push(told.length);
        stream.tell(told.length - 1, undefined);
      }
    };
    tell(5_000);
    stream.opened(opened, 'at-most-once');
    stream.closed();
    tell(3);
    stream.opened({ ...opened, next: 5_001, prefix: 5_000 }, 'at-most-once');
    tell(2);
    assertEquals(sent, told);
    assertEquals([lost.length, stream.ledger().bufferedBytes, stream.ledger().acknowledged], [0, 5, 5_000]);
  });
});
