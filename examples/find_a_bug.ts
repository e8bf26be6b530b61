/**
 * The simulator looks for a bug in a singleton of yours. This one hands out ticket numbers, and none may be given twice. It
 * keeps the last number in memory and hands it over when it moves: that is enough until its host crashes.
 *
 *     bun run examples/find_a_bug.ts
 *     deno run --allow-read examples/find_a_bug.ts
 *     node examples/find_a_bug.ts
 */
import { Actor } from 'singlet';
import { SingletonKey } from 'singlet/cluster';
import { clusterProgram, describeFault, shrink, simulate } from 'singlet/testkit';

/** With `fixed`, a number begins with the epoch, which grows from one instance to the next. */
class Tickets extends Actor<'next'> {
  #last = 0;
  readonly #fixed: boolean;

  constructor(fixed: boolean) {
    super();
    this.#fixed = fixed;
  }

  override onReceive(): void {
    this.#last += 1;
    this.context.sender.tell(this.#fixed ? `${this.context.epoch}-${this.#last}` : `${this.#last}`);
  }

  serializeForHandOver(): Uint8Array {
    return Uint8Array.of(this.#last >> 8, this.#last & 255);
  }

  restoreFromHandOver(state: Uint8Array): void {
    this.#last = state[0]! * 256 + state[1]!;
  }
}

const tickets = SingletonKey.of<'next'>('tickets');

const office = (fixed: boolean) =>
  clusterProgram(() => {
    const given = new Set<string>();
    let twice: string | undefined;
    let open = true;
    return {
      name: 'tickets',
      singletons: ['tickets'],
      start(cluster, process) {
        const ref = cluster.singleton.start(tickets, () => new Tickets(fixed));
        const ask = (): void => {
          if (!open) return;
          process.timers.set(200, ask);
          ref.ask<string>('next', 2_000).then((ticket) => {
            if (given.has(ticket)) twice ??= `ticket ${ticket} was given twice`;
            given.add(ticket);
          }, () => {});
        };
        ask();
      },
      check: () => twice,
      quiesce: () => void (open = false),
    };
  });

/** The first of these seeds that breaks the rule. */
async function search(profile: string, fixed: boolean): Promise<string> {
  for (let seed = 1; seed <= 5; seed += 1) {
    const result = await simulate({ seed, nodes: 3, profile, until: 30_000, program: office(fixed) });
    if (result.failure === undefined) continue;
    const shortest = (await shrink(result, office(fixed), 20)).result;
    const faults = shortest.plan.faults.map((fault) =>
      describeFault(fault).replace(/^\S+ /, '').replace(/, again.*/, '')
    );
    return `seed ${seed}: ${shortest.failure?.message} after: ${faults.join('; ')}`;
  }
  return 'no rule broken in 5 seeds';
}

console.log('moves:', await search('moves', false));
console.log('crashes:', await search('crash', false));
console.log('crashes, fixed:', await search('crash', true));
