import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { CallerNode } from '../../src/callers/caller_node.ts';
import type { CallerConnection } from '../../src/callers/connection.ts';
import { deliverEnvelope } from '../../src/singleton/messages.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';
import { LeanCodec } from '../../src/wire/lean_codec.ts';

test('a new connection gives no new allowance, unless the rate is another one', () => {
  const environment = new ManualEnvironment();
  let sent = 0;
  const connection = { congested: false, send: () => (sent += 1, 'queued') } as unknown as CallerConnection;
  const node = new CallerNode({
    environment,
    codec: new LeanCodec({ maxBytes: 1_000 }),
    connection: () => connection,
    base: () => 1,
    receiverOf: () => undefined,
    retry: () => {},
  });
  const sendable = (): number => {
    const before = sent;
    while (node.sendUser('', deliverEnvelope('s', 1, 1, false, undefined, 1)) === undefined);
    return sent - before;
  };
  node.begin(50);
  assertEquals(sendable(), 50);
  node.begin(50);
  assertEquals(sendable(), 0);
  node.begin(20);
  assertEquals(sendable(), 20);
  node.end();
});
