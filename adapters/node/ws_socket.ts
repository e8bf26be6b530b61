/** A socket of the `ws` package, server or client, bound to the common behaviour. */
import type { RawData, WebSocket } from 'ws';
import { ManagedSocket } from '../shared/managed_socket.ts';

export function manageWs(socket: WebSocket, maxFrameBytes: number): ManagedSocket {
  socket.binaryType = 'nodebuffer';
  const written = (): void => managed.drained();
  const managed: ManagedSocket = new ManagedSocket({
    send(bytes) {
      if (socket.readyState === socket.OPEN) socket.send(bytes, { binary: true }, written);
      return true;
    },
    bufferedBytes: () => socket.bufferedAmount,
    close: (code, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
  }, maxFrameBytes);
  socket.on('message', (data: RawData, isBinary: boolean) => {
    if (!isBinary) managed.receivedText();
    else managed.received(bytesOf(data as Buffer));
  });
  socket.on('close', (code, reason) => managed.ended(code, reason.toString()));
  // A close always follows; an error that nobody listens to would end the process.
  socket.on('error', () => {});
  return managed;
}

/** The layers above know `Uint8Array` only; a `Buffer` differs in `slice`. */
function bytesOf(data: Buffer): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
