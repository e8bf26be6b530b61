/** A bare WebSocket of the runtime, with nothing on top. */
import { runtime } from '#runtime';
import type { Socket } from '../src/transport/runtime.ts';

const common = { subprotocol: 'raw', maxFrameBytes: 2 ** 21 };

/** Resolves to the port. `onFrame` gets each frame, and the socket to answer on. */
export async function listenRaw(onSocket: () => (frame: Uint8Array, socket: Socket) => void): Promise<number> {
  const listener = await runtime.listen({
    ...common,
    hostname: '127.0.0.1',
    port: 0,
    socketPath: '/raw',
    fetch: () => new Response('raw'),
    admit: () => true,
    onLost: () => {},
    onSocket: (socket) => {
      const onFrame = onSocket();
      socket.onClose = () => {};
      socket.onMessage = (frame) => onFrame(frame, socket);
    },
  });
  return listener.port;
}

export function dialRaw(port: number): Promise<Socket> {
  return new Promise((resolve, reject) =>
    runtime.dial({ ...common, url: `ws://127.0.0.1:${port}/raw`, timeoutMs: 5_000 }, (outcome) => {
      if (!('send' in outcome)) return reject(new Error(outcome.detail));
      outcome.onMessage = () => {};
      outcome.onClose = () => {};
      resolve(outcome);
    })
  );
}
