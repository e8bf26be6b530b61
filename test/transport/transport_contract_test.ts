/** The contract of `Transport` against both implementations. */
import { runtime } from '#runtime';
import { MemoryNetwork } from '../../src/transport/memory.ts';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { type NodeOptions, someSeedAnswer, transportContract } from '../contract/transport_contract.ts';
import { localEnvironment } from './local_environment.ts';

const network = new MemoryNetwork({ environment: localEnvironment() });
const slow = new MemoryNetwork({ environment: localEnvironment(), delayMs: () => 1 + Math.random() * 5 });

function memory(on: MemoryNetwork) {
  return ({ port = 0, uid = 'u', clusterName = 'c', ...rest }: NodeOptions) =>
    on.transport({ address: `127.0.0.1:${port}`, uid, clusterName, ...rest });
}

function sealed(options: NodeOptions) {
  return webSocket({ ...options, frameIntegrity: true });
}

function webSocket({ port = 0, uid = 'u', clusterName = 'c', ...rest }: NodeOptions & { frameIntegrity?: boolean }) {
  const environment = localEnvironment();
  const secret = 'a secret of the tests';
  const defaults = { runtime, environment, host: '127.0.0.1', secret, seedAnswer: someSeedAnswer };
  return new WebSocketTransport({ ...defaults, port, uid, clusterName, ...rest });
}

transportContract('memory', memory(network));
transportContract('memory with delays', memory(slow));
transportContract('web socket', webSocket);
transportContract('web socket with frame integrity', sealed);
