/** Node 20 and later. */
import process from 'node:process';
import type { Dialler, Runtime } from '../../src/transport/runtime.ts';
import { processMeans } from '../shared/process_means.ts';
import { probeTcp } from '../shared/tcp_probe.ts';
import { dial } from './dial.ts';
import { listen } from './listen.ts';
import { secureFetch } from './secure_fetch.ts';

/** Everything a node needs of this runtime; what `ClusterOptions.runtime` is by default here. */
export const runtime: Runtime = {
  name: 'node',
  version: process.versions.node,
  listen,
  dial,
  probe: probeTcp,
  fetch: (url, init, tls) => {
    const secure = tls?.ca !== undefined && url.startsWith('https:');
    return secure ? secureFetch(url, init, tls) : fetch(url, init);
  },
  randomBytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  ...processMeans,
};

/** What a caller from outside needs of it. */
export const dialler: Dialler = runtime;
