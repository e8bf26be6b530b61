/**
 * Three processes of one runtime; the last one tells the singleton 1 000 messages a second and notes when replies stop
 * coming: the gap of planned moves (the host leaves by SIGTERM) and of crashes (SIGKILL).
 *
 *     moves.ts node SEED?           a member that hosts
 *     moves.ts sender SEED          joins, sends, prints the gap when the host has changed, and where its messages ended
 */
import { runtime } from '#runtime';
import { Actor, ActorSystem } from '../src/mod.ts';
import { Cluster, SingletonKey } from '../src/facade/mod.ts';
import { GapSender } from './gap.ts';
import { now } from './measure.ts';

const repliesMs = 3_000;

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

async function send(): Promise<void> {
  const sender = new GapSender();
  class Replies extends Actor<[number, string]> {
    override onReceive([n, host]: [number, string]): void {
      sender.onReply(n, host);
    }
  }
  const replies = system.spawn(Replies, 'replies');
  await sender.run((n) => ref.tell(n, replies), () => console.log('@started now'));
  const ledger = () => cluster.singleton.find('host')!.proxy.stream.ledger();
  while (ledger().buffered > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  // Replies may still be on their way.
  const until = now() + repliesMs;
  while (sender.result.answered < sender.result.told && now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const { acknowledged, outcomeUnknown } = ledger();
  console.log(`@gap ${JSON.stringify({ ...sender.result, acknowledged, outcomeUnknown })}`);
}

if (role === 'sender') await send();
else {
  console.log(`@node ${cluster.address}`);
  runtime.onSignal(() => void cluster.leave().then(() => runtime.exit(0)));
}
