/** Frame integrity, by itself, so that a page loads it only when it is asked for. */
export { frameKeysFrom } from '../transport/frame_keys.ts';
export { SealedSocket } from '../transport/sealed_socket.ts';
