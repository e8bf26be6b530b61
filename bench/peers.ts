/**
 * The same local shapes in other libraries, from a folder that has them installed, for comparison in one run:
 *
 *     mkdir /tmp/peers && cd /tmp/peers && npm init -y && npm i nact xstate effect
 *     npm run bench -- --only local --peers /tmp/peers
 *
 * A peer that is not there is left out. Each row is verified by count, like our own.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import process from 'node:process';
import { check, emit, now, repeat } from './measure.ts';

const runs = 5;
const chunk = 10_000;
const chunks = 20;
const asks = 10_000;
const folder = process.argv[2];
if (folder === undefined) throw new RangeError('peers.ts takes the folder in which the peers are installed');
const require = createRequire(pathToFileURL(`${folder}/package.json`));

/** One actor of a peer that counts what it gets. */
interface Peer {
  tell(message: number): void;
  /** Resolves when so many have been handled since the start. */
  handled(count: number): Promise<void>;
  readonly count: () => number;
  ask?(message: number): Promise<unknown>;
  stop(): void | Promise<void>;
}

/** Counts, and wakes who waits for a count. */
function counter(): { add(): void; count(): number; reached(count: number): Promise<void> } {
  let handled = 0;
  let wanted = Infinity;
  let wake = (): void => {};
  return {
    add: () => {
      handled += 1;
      if (handled >= wanted) wake();
    },
    count: () => handled,
    reached: (count) =>
      new Promise((resolve) => {
        wanted = count;
        wake = resolve;
        if (handled >= count) resolve();
      }),
  };
}

async function load(name: string): Promise<any> {
  return await import(pathToFileURL(require.resolve(name)).href);
}

const peers: Readonly<Record<string, () => Promise<Peer>>> = {
  async nact() {
    const { start, dispatch, spawn, query, stop } = await load('nact');
    const system = start();
    const seen = counter();
    const actor = spawn(
      system,
      (_state: unknown, message: number | { n: number; sender: unknown }) => {
        if (typeof message === 'number') seen.add();
        else dispatch(message.sender, message.n);
      },
      'counter',
    );
    return {
      tell: (message) => dispatch(actor, message),
      handled: seen.reached,
      count: seen.count,
      ask: (n) => query(actor, (sender: unknown) => ({ n, sender }), 5_000),
      stop: () => stop(system),
    };
  },
  async xstate() {
    const { createActor, fromTransition } = await load('xstate');
    const seen = counter();
    const logic = fromTransition((state: number) => {
      seen.add();
      return state + 1;
    }, 0);
    const actor = createActor(logic).start();
    return {
      tell: (n) => actor.send({ type: 'message', n }),
      handled: seen.reached,
      count: seen.count,
      stop: () => actor.stop(),
    };
  },
  async effect() {
    const { Effect, Fiber, Queue } = await load('effect');
    const seen = counter();
    const queue = Effect.runSync(Queue.unbounded());
    const take = Effect.map(Queue.take(queue), () => seen.add());
    const fiber = Effect.runFork(Effect.forever(take));
    const offer = Queue.offerUnsafe ?? Queue.unsafeOffer;
    return {
      tell: (n) => offer(queue, n),
      handled: seen.reached,
      count: seen.count,
      stop: () => Effect.runPromise(Fiber.interrupt(fiber)),
    };
  },
};

for (const [name, make] of Object.entries(peers)) {
  let peer: Peer;
  try {
    peer = await make();
  } catch (error) {
    console.error(`${name} is left out: ${error instanceof Error ? error.message.split('\n')[0] : error}`);
    continue;
  }
  const { tell, handled, count, ask } = peer;
  emit(
    await repeat(`${name}: local tell, chunks of 10 000`, 'msg/s', runs, async () => {
      const before = count();
      const began = now();
      for (let round = 1; round <= chunks; round += 1) {
        for (let n = 0; n < chunk; n += 1) tell(n);
        await handled(before + round * chunk);
      }
      check(count() - before, chunks * chunk, name);
      return chunks * chunk / (now() - began) * 1_000;
    }),
  );
  if (ask !== undefined) {
    emit(
      await repeat(`${name}: local ask, one at a time`, 'asks/s', runs, async () => {
        const began = now();
        for (let n = 0; n < asks; n += 1) check((await ask(n)) as number, n, name);
        return asks / (now() - began) * 1_000;
      }),
    );
  }
  await peer.stop();
}
process.exit(0);
