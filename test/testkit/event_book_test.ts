/** The witness of persistence, told each kind of lie. */
import { describe, test } from 'node:test';
import { assertRejects } from '@std/assert';
import { EventBook } from '../../src/testkit/event_book.ts';
import { SimulationError, World } from '../../src/testkit/sim_world.ts';

/** What the witness says once all of this has been told to it. */
async function verdict(tell: (book: EventBook) => void): Promise<void> {
  const world = new World({ seed: 1 });
  const book = new EventBook(world);
  book.wanted('a', ['1', '2', '3', '4']);
  tell(book);
  await world.advance(1);
}

const refuses = (rule: string, tell: (book: EventBook) => void) =>
  assertRejects(() => verdict(tell), SimulationError, rule);
const [older, younger] = [{ name: 'older' }, { name: 'younger' }];

describe('the witness of persistence', () => {
  test('accepts one history, with an event whose acknowledgement never came', () =>
    verdict((book) => {
      book.recovered('a', older, [1, 1], []);
      book.acknowledged('a', older, 2, ['1', '2']);
      book.recovered('a', younger, [2, 2], ['1', '2', '3']);
      // It was written before the other one recovered, and its acknowledgement took longer.
      book.acknowledged('a', older, 3, ['3']);
      book.acknowledged('a', younger, 4, ['4']);
      book.left('a', 2, ['2', '3', '4']);
      book.shown('a', ['1', '2', '3', '4']);
    }));

  test('one whose claim was overtaken while it stood still may be behind, and must not differ', async () => {
    const begin = (book: EventBook) => {
      book.recovered('a', younger, [2, 2], ['1']);
      book.acknowledged('a', younger, 2, ['2']);
    };
    await verdict((book) => {
      begin(book);
      book.recovered('a', older, [1, 1], ['1']);
      book.acknowledged('a', younger, 3, ['3']);
    });
    await refuses('J1', (book) => [begin(book), book.recovered('a', older, [1, 1], ['2'])]);
    await refuses('J1', (book) => [begin(book), book.recovered('a', older, [2, 3], ['1'])]);
  });

  test('J1: what was acknowledged or shown is gone, or is another event', async () => {
    const begin = (book: EventBook) => {
      book.recovered('a', older, [1, 1], []);
      book.acknowledged('a', older, 2, ['1', '2']);
    };
    await refuses('J1', (book) => [begin(book), book.recovered('a', younger, [2, 2], ['1'])]);
    await refuses('J1', (book) => [begin(book), book.recovered('a', younger, [2, 2], ['2', '1'])]);
    await refuses(
      'J1',
      (book) => [begin(book), book.recovered('a', younger, [2, 2], ['1', '2', '3']), book.shown('a', ['1', '2'])],
    );
    await refuses('J1', (book) => [begin(book), book.acknowledged('a', older, 2, ['3'])]);
    await refuses('J1', (book) => [begin(book), book.acknowledged('a', older, 4, ['4'])]);
    await refuses('J1', (book) => [begin(book), book.left('a', 1, ['1'])]);
  });

  test('J2: what nobody wanted, or twice', async () => {
    await refuses('J2', (book) => book.recovered('a', older, [1, 1], ['5']));
    await refuses('J2', (book) => book.recovered('a', older, [1, 1], ['1', '1']));
  });

  test('J3: an instance that was replaced is told that it has written', async () => {
    await refuses('J3', (book) => {
      book.recovered('a', older, [1, 1], []);
      book.recovered('a', younger, [2, 2], []);
      book.acknowledged('a', older, 1, ['1']);
    });
  });
});
