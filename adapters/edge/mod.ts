/** Edge isolates and browsers: they can dial and fetch, and nothing else. */
import { ListenError } from '../../src/transport/errors.ts';
import type { Runtime } from '../../src/transport/runtime.ts';
import { dialWebSocket, type WebSocketLike } from '../shared/web_socket_dial.ts';

export const runtime: Runtime = {
  name: 'edge',
  version: '',
  async listen(options) {
    throw new ListenError(
      options.hostname,
      options.port,
      'unsupported',
      'an isolate or a browser cannot be dialled, so it cannot be a member; Cluster.connect(urls, { token }) reaches the singletons of a cluster from here',
    );
  },
  dial(options, done) {
    if (options.tls?.ca !== undefined) {
      const detail = 'this runtime takes no certificate authority; its own trust store decides';
      queueMicrotask(() => done({ reason: 'other', detail }));
      return () => {};
    }
    return dialWebSocket(
      { open: () => new WebSocket(options.url, [options.subprotocol]) as WebSocketLike },
      options,
      done,
    );
  },
  probe(_host, _port, _timeoutMs, done) {
    let cancelled = false;
    queueMicrotask(() => cancelled ? undefined : done('other'));
    return () => {
      cancelled = true;
    };
  },
  fetch(url, init, tls) {
    if (tls?.ca === undefined) return fetch(url, init);
    return Promise.reject(new Error('this runtime takes no certificate authority; its own trust store decides'));
  },
  randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  onSignal: () => () => {},
  exit: () => {},
  args: () => [],
  readTextFile: (path) => Promise.reject(new Error(`cannot read ${path}: this runtime has no files`)),
  environmentVariable: () => undefined,
};
