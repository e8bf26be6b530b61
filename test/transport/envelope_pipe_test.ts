import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import type { Link } from '../../src/transport/contract.ts';
import { EnvelopePipe } from '../../src/transport/envelope_pipe.ts';
import { memoryCall } from '../../src/transport/memory_callers.ts';
import { MemoryNetwork } from '../../src/transport/memory.ts';
import { batchContent, type Envelope } from '../../src/wire/batch.ts';
import { LeanCodec } from '../../src/wire/lean_codec.ts';

const codec = new LeanCodec({ maxBytes: limits.callerFrameBytes });

function pipeWith({ maxMessages = 100, maxBytes = 1_000_000 } = {}) {
  const environment = new ManualEnvironment({ seed: 1 });
  const frames: Uint8Array[] = [];
  const state = { buffered: 0, closed: 0, drained: 0 };
  const link = {
    peer: undefined as never,
    dialled: true,
    send: (frame: Uint8Array) => void frames.push(frame),
    bufferedBytes: () => state.buffered,
    close: () => void (state.closed += 1),
  } satisfies Link;
  const pipe = new EnvelopePipe(link, {
    environment,
    encode: (envelope) => codec.encode(envelope),
    maxMessages,
    maxBytes,
    socketBytes: 1_000,
    onDrain: () => void (state.drained += 1),
  });
  const read = () =>
    frames.flatMap((frame) => codec.decodeSequence(batchContent(frame, limits.frameBytes))) as Envelope[];
  return { environment, pipe, frames, state, read };
}

test('what is said in one turn goes in one frame per lane, the system lane first', async () => {
  const { environment, pipe, frames, read } = pipeWith();
  pipe.send('user', [1, 'a']);
  pipe.send('system', [2]);
  pipe.send('user', [3]);
  assertEquals(frames.length, 0);
  await environment.settle();
  assertEquals([frames.length, read()], [2, [[2], [1, 'a'], [3]]]);
});

test('a full socket holds the user lane, then the system lane; both go on when it drains', async () => {
  const { environment, pipe, read, state } = pipeWith();
  state.buffered = 1_500;
  pipe.send('user', [1]);
  pipe.send('system', [2]);
  await environment.settle();
  assertEquals([read(), pipe.congested], [[[2]], true]);
  state.buffered = 3_000;
  pipe.send('system', [3]);
  await environment.elapse(50);
  assertEquals(read(), [[2]]);
  state.buffered = 0;
  await environment.elapse(10);
  assertEquals([read(), pipe.congested, state.drained], [[[2], [3], [1]], false, 1]);
});

test('queues are bounded in messages and bytes; large batches become several frames', async () => {
  const { environment, pipe, frames, state } = pipeWith({ maxMessages: 5, maxBytes: 200_000 });
  state.buffered = 5_000;
  const said = Array.from({ length: 6 }, () => pipe.send('user', [1, new Uint8Array(30_000)]));
  assertEquals(said, ['queued', 'queued', 'queued', 'queued', 'queued', 'full']);
  state.buffered = 0;
  await environment.elapse(10);
  assertEquals(frames.map(({ length }) => length < limits.batchBytes + 100), [true, true, true]);
  state.buffered = 5_000;
  assertEquals(pipe.send('user', [1, new Uint8Array(150_000)]), 'queued');
  assertEquals(pipe.send('user', [1, new Uint8Array(60_000)]), 'full');
});

test('a close sends what is queued first; afterwards nothing is taken', () => {
  const { pipe, read, state } = pipeWith();
  state.buffered = 1_000_000;
  pipe.send('user', [1]);
  pipe.close(4000, 'enough');
  pipe.close(4000, 'enough');
  assertEquals([read(), state.closed, pipe.send('user', [2]), pipe.congested], [[[1]], 1, 'closed', true]);
});

test('in memory a call to nobody, or to a node that takes no callers, fails', async () => {
  const environment = new ManualEnvironment({ seed: 1 });
  const network = new MemoryNetwork({ environment });
  const outcomes: string[] = [];
  const events = {
    opened: () => void outcomes.push('opened'),
    failed: ({ code }: { code: string }) => void outcomes.push(code),
    frame: () => {},
    closed: () => {},
  };
  memoryCall(network, { id: 'caller:1', owner: 0 }, '127.0.0.1:1', events);
  const cancel = memoryCall(network, { id: 'caller:1', owner: 0 }, '127.0.0.1:1', events);
  await environment.settle();
  assertEquals(outcomes.length, 2);
  cancel();
  assert(outcomes.every((code) => code === 'refused'));
});
