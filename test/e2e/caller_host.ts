/**
 * A node for `callers_test.ts`: hosts the singleton `room`, which prints what it handles, and takes callers. It prints the
 * same line as `node.ts`.
 */
import { parseArgs } from 'node:util';
import { runtime } from '#runtime';
import { Actor } from '../../src/actor/actor.ts';
import { Cluster, SingletonKey } from '../../src/facade/mod.ts';
import { ActorSystem } from '../../src/mod.ts';
import type { RoomMessage } from './caller_load.ts';

class Room extends Actor<RoomMessage> {
  static readonly singleton: SingletonKey<RoomMessage> = SingletonKey.of('room');
  override onReceive(message: RoomMessage): void {
    if (message === 'where') this.context.sender.tell(this.cluster.address);
    // Before it is acknowledged; a pipe takes it at once.
    else console.log(`handled ${message.from} ${message.n}`);
  }
}

const { values } = parseArgs({
  args: [...runtime.args()],
  options: { seeds: { type: 'string', default: '' }, 'caller-token': { type: 'string', default: '' } },
});
const system = ActorSystem.create('rooms', { logLevel: 'info' });
const cluster = await Cluster.join(system, {
  seeds: values.seeds.split(',').filter((seed) => seed !== ''),
  token: 'a-token-of-operators',
  callers: [{ name: 'tests', token: values['caller-token'], singletons: ['room'] }],
}, {
  onListening: ({ address, uid }) => {
    console.log(`node ${address} uid ${uid} on ${runtime.name} ${runtime.version}, http://${address}/`);
  },
});
cluster.singleton.start(Room);
runtime.onSignal(() => void system.terminate().then(() => runtime.exit(0)));
await cluster.whenEnded;
