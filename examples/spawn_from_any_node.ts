/**
 * A singleton spawned from whichever node needs it, by name and kind. Three nodes in one process, for the sake of the example:
 *
 *     bun run examples/spawn_from_any_node.ts
 *     deno run --allow-net examples/spawn_from_any_node.ts
 *     node examples/spawn_from_any_node.ts
 */
import { Actor, ActorSystem } from 'singlet';
import { Cluster, ClusterOptions } from 'singlet/cluster';

/** A budget of calls a second, shared by the whole cluster. */
class RateBudget extends Actor<'take'> {
  static readonly kind = 'rate-budget';
  readonly #perSecond: number;
  #left: number;

  constructor(props: { perSecond: number }) {
    super();
    this.#perSecond = props.perSecond;
    this.#left = props.perSecond;
  }

  override preStart(): void {
    this.context.timers.startFixedRate('refill', 'take', 1_000);
  }

  override onReceive(_message: 'take'): void {
    if (!this.context.hasSender) this.#left = this.#perSecond;
    else this.context.sender.tell({ granted: this.#left-- > 0, host: this.cluster.address });
  }
}

const clusters: Cluster[] = [];
for (let n = 0; n < 3; n += 1) {
  const system = ActorSystem.create('example', { logLevel: 'error' });
  const seeds = clusters.slice(0, 1).map((cluster) => cluster.address);
  const options = ClusterOptions.create().withKinds(RateBudget).withSeeds(...seeds);
  clusters.push(await Cluster.join(system, options));
}

// Two nodes want it at the same moment: there is one.
const [one, other] = await Promise.all(
  clusters.slice(1).map((cluster) => cluster.singleton.spawn('api-budget', RateBudget, { props: { perSecond: 2 } })),
);
type Answer = { granted: boolean; host: string };
const answers = [await one!.ask<Answer>('take'), await other!.ask<Answer>('take'), await other!.ask<Answer>('take')];
console.log(
  'granted:',
  answers.map((answer) => answer.granted).join(', '),
  'by one host:',
  new Set(answers.map((answer) => answer.host)).size === 1,
);

// Its host leaves; any ref goes on working.
await clusters[0]!.leave();
const after = await other!.ask<Answer>('take');
console.log('moved:', after.host !== answers[0]!.host);

for (const cluster of clusters) await cluster.system.terminate();
