/** Edge isolates and browsers: they can dial and fetch, and nothing else. */
import { ListenError } from '../../src/transport/errors.ts';
import type { Dialler, Runtime } from '../../src/transport/runtime.ts';
import { dialWebSocket, type WebSocketLike } from '../shared/web_socket_dial.ts';

const foreignTrust = 'this runtime takes no certificate authority; its own trust store decides';

const dial: Runtime['dial'] = (options, done) => {
  if (options.tls?.ca !== undefined) {
    queueMicrotask(() => done({ reason: 'other', detail: foreignTrust }));
    return () => {};
  }
  const open = () => new WebSocket(options.url, [options.subprotocol]) as WebSocketLike;
  return dialWebSocket({ open }, options, done);
};
const randomBytes: Runtime['randomBytes'] = (length) => crypto.getRandomValues(new Uint8Array(length));

/** What a caller from outside needs: connections out of here. */
export const dialler: Dialler = { dial, randomBytes };

/** A runtime that dials and fetches; `listen` rejects with `ListenError`, so nothing here can be a member. */
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
  dial,
  randomBytes,
  probe(_host, _port, _timeoutMs, done) {
    let cancelled = false;
    queueMicrotask(() => cancelled ? undefined : done('other'));
    return () => {
      cancelled = true;
    };
  },
  fetch(url, init, tls) {
    if (tls?.ca === undefined) return fetch(url, init);
    return Promise.reject(new Error(foreignTrust));
  },
  onSignal: () => () => {},
  exit: () => {},
  args: () => [],
  readTextFile: (path) => Promise.reject(new Error(`cannot read ${path}: this runtime has no files`)),
  environmentVariable: () => undefined,
};
