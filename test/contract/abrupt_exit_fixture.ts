/** A process of its own for `exit_test.ts`: links itself to the address it is given, and ends in the way it is given, at once. */
import { runtime } from '#runtime';
import process from 'node:process';
import { WebSocketTransport } from '../../src/transport/websocket_transport.ts';
import { localEnvironment } from '../transport/local_environment.ts';
import { someSeedAnswer } from './transport_contract.ts';

const [address = '', way] = runtime.args();
const transport = new WebSocketTransport({
  runtime,
  environment: localEnvironment(),
  clusterName: 'c',
  host: '127.0.0.1',
  port: 0,
  uid: 'abrupt',
  seedAnswer: someSeedAnswer,
});
await transport.start({ accepted() {}, frame() {}, closed() {}, listenerLost() {} });
transport.dial(address, (outcome) => {
  if ('reason' in outcome) return console.log(outcome.detail);
  setTimeout(() => {
    console.log('ends');
    if (way === 'exit') process.exit(3);
    throw new Error('at top level');
  }, 100);
});
