/**
 * Three processes of one runtime; the last one tells the singleton 1 000 messages a second and notes when replies stop
 * coming: the gap of planned moves (the host leaves by SIGTERM) and of crashes (SIGKILL).
 *
 *     moves.ts node PORT SEED?      a member that hosts
 *     moves.ts sender SEED          joins, sends, prints gaps when the host changes
 */
import { runtime } from '#runtime';
import { Actor, ActorSystem } from '../src/mod.ts';
import { Cluster, SingletonKey } from '../src/facade/mod.ts';
import { now } from './measure.ts';

class Host extends Actor<number> {
  static readonly singleton: SingletonKey<number> = SingletonKey.of('host');
  override onReceive(n: number): void {
    this.context.sender.tell([n, this.cluster.address]);
  }
}

const [role, seed] = runtime.args();
const system = ActorSystem.create('bench', { logLevel: 'error' });
const cluster = await Cluster.join(system, { seeds: seed ? [seed] : [] });
const ref = cluster.singleton.start(Host);
console.log(`@node ${cluster.address}`);

if (role === 'sender') {
  class Replies extends Actor<[number, string]> {
    last = now();
    host = '';
    override onReceive([n, host]: [number, string]): void {
      const at = now();
      if (this.host !== '' && host !== this.host) console.log(`@gap ${at - this.last} ${n}`);
      this.last = at;
      this.host = host;
    }
  }
  const replies = system.spawn(Replies, 'replies');
  let n = 0;
  let due = now();
  setInterval(() => {
    for (; due < now(); due += 1) ref.tell(n++, replies);
  }, 1);
} else {
  runtime.onSignal(() => void cluster.leave().then(() => runtime.exit(0)));
}
