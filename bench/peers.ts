/**
 * The shapes of `local.ts` in other libraries, from a folder that has them installed, in the same run as ours:
 *
 *     mkdir /tmp/peers && cd /tmp/peers && npm init -y && npm i nact xstate effect
 *     npm run bench -- --only local --peers /tmp/peers
 *
 * One that is not there is left out. Every message is counted by who handled it, like our own.
 */
import process from 'node:process';
import { check, emit, now, repeat, type Row } from './measure.ts';
import { libraries, type Library, type Loader, loaderOf } from './peer_libraries.ts';

const runs = 5;
const chunk = 10_000;
const million = 1_000_000;

/** Counts what all actors of one library handle, and wakes who waits for a count. */
class Counter {
  count = 0;
  #wanted = Infinity;
  #wake = (): void => {};

  readonly add = (): void => {
    this.count += 1;
    if (this.count >= this.#wanted) this.#wake();
  };

  reached(count: number): Promise<void> {
    if (this.count >= count) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wanted = count;
      this.#wake = resolve;
    });
  }
}

class Bench {
  readonly #library: Library;
  readonly #counter = new Counter();

  constructor(library: Library) {
    this.#library = library;
  }

  /** Tells in rounds of `perRound` and waits for each to be handled, as `local.ts` does. */
  async #tells(total: number, perRound: number, to: readonly { tell(n: number): void }[]): Promise<number> {
    const counter = this.#counter;
    counter.count = 0;
    const began = now();
    for (let sent = 0; sent < total; sent += perRound) {
      for (let n = 0; n < perRound; n += to.length) for (const one of to) one.tell(n);
      await counter.reached(sent + perRound);
    }
    check(counter.count, total, 'tells');
    return total / (now() - began) * 1_000;
  }

  async #asks(total: number, atOnce: number): Promise<number> {
    const { ask } = this.#library;
    const began = now();
    for (let n = 0; n < total; n += atOnce) {
      if (atOnce === 1) check(await ask!(n) as number, n, 'ask');
      else {
        const replies = await Promise.all(Array.from({ length: atOnce }, (_, k) => ask!(n + k)));
        replies.forEach((reply, k) => check(reply as number, n + k, 'ask'));
      }
    }
    return total / (now() - began) * 1_000;
  }

  /** Until the last one has handled a message; then each of the others handles one too, which is not timed. */
  async #started(total: number): Promise<number> {
    const counter = this.#counter;
    counter.count = 0;
    const began = now();
    const actors = Array.from({ length: total }, () => this.#library.spawn(counter.add));
    actors.at(-1)!.tell(0);
    await counter.reached(1);
    const rate = total / (now() - began) * 1_000;
    for (const actor of actors.slice(0, -1)) actor.tell(0);
    await counter.reached(total);
    check(counter.count, total, 'actors started');
    for (const actor of actors) actor.stop();
    return rate;
  }

  async *rows(): AsyncGenerator<Row> {
    const one = [this.#library.spawn(this.#counter.add)];
    const many = Array.from({ length: 1_000 }, () => this.#library.spawn(this.#counter.add));
    yield repeat('local tell, chunks of 10 000', 'msg/s', runs, () => this.#tells(10 * chunk, chunk, one));
    yield repeat('local tell, burst of a million', 'msg/s', 3, () => this.#tells(million, million, one));
    yield repeat('local tell, 1 000 actors', 'msg/s', runs, () => this.#tells(10 * chunk, chunk, many));
    if (this.#library.ask !== undefined) {
      yield repeat('local ask, one at a time', 'asks/s', runs, () => this.#asks(5_000, 1));
      yield repeat('local ask, 100 in flight', 'asks/s', runs, () => this.#asks(10_000, 100));
    }
    yield repeat('actors started', 'actors/s', runs, () => this.#started(20_000));
  }
}

async function measure(name: string, make: (load: Loader) => Promise<Library>, load: Loader): Promise<void> {
  let library: Library;
  try {
    library = await make(load);
  } catch (error) {
    console.error(`${name} is left out: ${error instanceof Error ? error.message.split('\n')[0] : error}`);
    return;
  }
  try {
    for await (const row of new Bench(library).rows()) emit({ ...row, peer: name });
  } catch (error) {
    console.error(`${name}:`, error);
    process.exitCode = 1;
  }
  await library.stop();
}

const folder = process.argv[2];
if (folder === undefined) throw new RangeError('peers.ts takes the folder in which the peers are installed');
const load = loaderOf(folder);
for (const [name, make] of Object.entries(libraries)) await measure(name, make, load);
process.exit();
