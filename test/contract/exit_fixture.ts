/**
 * A process of its own for `exit_test.ts`: it listens, dials the mute server whose port it is given, waits until somebody
 * has connected to it, closes everything, and must then end by itself with code 0.
 */
import { runtime } from '#runtime';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { localEnvironment, pause } from '../transport/local_environment.ts';
import { someSeedAnswer } from './transport_contract.ts';

const mutePort = Number(runtime.args()[0]);
let sockets = 0;
const listener = await runtime.listen({
  hostname: '127.0.0.1',
  port: 0,
  socketPath: '/cluster/ws',
  subprotocol: 'singlet.v1',
  maxFrameBytes: 1024,
  fetch: () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(3)) })),
  admit: () => true,
  onSocket: () => sockets++,
  onLost: (why) => console.log(`lost ${why}`),
});
console.log(`port ${listener.port}`);
const url = `ws://127.0.0.1:${mutePort}/cluster/ws`;
const transport = new WebSocketTransport({
  runtime,
  environment: localEnvironment(),
  clusterName: 'c',
  host: '127.0.0.1',
  port: 0,
  uid: 'u',
  seedAnswer: someSeedAnswer,
});
await transport.start({ accepted() {}, frame() {}, closed() {}, listenerLost() {} });
transport.dial(`127.0.0.1:${mutePort}`, () => {});
const offSignals = runtime.onSignal(() => {});
runtime.dial({ url, subprotocol: 'singlet.v1', timeoutMs: 2_000, maxFrameBytes: 1024 }, async (outcome) => {
  while (sockets === 0) await pause(10);
  if (!('reason' in outcome)) outcome.close(1000, 'done');
  if (runtime.environmentVariable('SINGLET_TEST') !== undefined && runtime.name === 'deno') console.log('not private');
  await Promise.all([listener.close(), transport.stop()]);
  offSignals();
  console.log('closed');
});
