/** What every journal must do. Run by each implementation against itself. */
import { describe, test } from 'node:test';
import { assertEquals, assertGreater, assertInstanceOf, assertLess, assertRejects } from '@std/assert';
import { limits } from '../../src/limits.ts';
import { FencedError, OptionsError } from '../../src/mod.ts';
import {
  type Journal,
  JournalConcurrencyError,
  type NewEvent,
  type StoredEvent,
  type Writer,
} from '../../src/persistence/mod.ts';
import { SerializationError } from '../../src/wire/errors.ts';

export interface JournalUnderTest {
  readonly journal: Journal;
  /** A journal on the same data, as after a restart of the process; undefined where nothing outlives it. */
  readonly reopen: (() => Promise<Journal>) | undefined;
  /** How much its readers have taken from its medium so far, in a unit of its own. */
  readonly taken: () => number;
  readonly end: () => Promise<void>;
}

export const writerOf = (epoch: number, uid = `uid-${epoch}`, clusterId = 'c1'): Writer => ({ epoch, uid, clusterId });
export const eventsOf = (...payloads: unknown[]): NewEvent[] => payloads.map((payload) => ({ payload }));

export async function collect<T>(events: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const numbers = (events: readonly StoredEvent[]) => events.map((event) => event.sequenceNr);
const payloads = (events: readonly StoredEvent[]) => events.map((event) => event.payload);

export function journalContract(
  name: string,
  open: () => Promise<JournalUnderTest>,
  options: { readonly skip?: string | false } = {},
): void {
  const { skip = false } = options;
  describe(`R131, journal contract: ${name}`, { skip }, () => {
    const on = (title: string, run: (journal: Journal, under: JournalUnderTest) => Promise<void>) =>
      test(title, { skip }, async () => {
        const under = await open();
        try {
          await run(under.journal, under);
        } finally {
          await under.end();
        }
      });

    on('R131: numbers events from 1 upward and reads an inclusive range in order', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      const first = await journal.append('a', eventsOf('x', 'y'), 0, writer);
      assertEquals(numbers(first), [1, 2]);
      await journal.append('a', eventsOf('z'), 2, writer);
      const all = await collect(journal.read('a'));
      assertEquals(numbers(all), [1, 2, 3]);
      assertEquals(payloads(all), ['x', 'y', 'z']);
      assertEquals([all[0]?.epoch, all[0]?.uid, all[0]?.persistenceId], [1, 'uid-1', 'a']);
      assertEquals(numbers(await collect(journal.read('a', 2, 2))), [2]);
      assertEquals(numbers(await collect(journal.read('a', 2, 99))), [2, 3]);
      assertEquals(numbers(await collect(journal.read('a', 3, 2))), []);
      assertEquals(numbers(await collect(journal.read('nobody'))), []);
    });

    on('R131: an empty append is a no-op without any check of conflicts', async (journal) => {
      assertEquals(await journal.append('a', [], 77, writerOf(1)), []);
      assertEquals(await journal.highestSeq('a'), 0);
    });

    on('R131: deletes a prefix, and the highest number survives', async (journal, { reopen }) => {
      const { writer } = await journal.claim('a', writerOf(1));
      await journal.append('a', eventsOf(1, 2, 3, 4), 0, writer);
      await journal.delete('a', 2);
      assertEquals(numbers(await collect(journal.read('a'))), [3, 4]);
      await journal.delete('a', 99);
      assertEquals(numbers(await collect(journal.read('a'))), []);
      assertEquals(await journal.highestSeq('a'), 4);
      await journal.delete('a', 1);
      const again = reopen === undefined ? journal : await reopen();
      const claim = await again.claim('a', writerOf(2));
      assertEquals([claim.highestSeq, claim.deletedTo], [4, 4]);
      assertEquals(numbers(await again.append('a', eventsOf(5), 4, claim.writer)), [5]);
      assertEquals(payloads(await collect(again.read('a'))), [5]);
    });

    on('FB-119: refuses a wrong number, lower or higher, and says both', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      await journal.append('a', eventsOf(1, 2), 0, writer);
      for (const expected of [0, 1, 3]) {
        const error = await assertRejects(
          () => journal.append('a', eventsOf('no'), expected, writer),
          JournalConcurrencyError,
        );
        assertEquals([error.expected, error.actual, error.persistenceId], [expected, 2, 'a']);
      }
      assertEquals(payloads(await collect(journal.read('a'))), [1, 2]);
    });

    on('FB-119: of appends that race for one number exactly one wins', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      const tries = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => journal.append('a', eventsOf(n), 0, writer)));
      assertEquals(tries.filter((one) => one.status === 'fulfilled').length, 1);
      for (const one of tries) {
        if (one.status === 'rejected') assertInstanceOf(one.reason, JournalConcurrencyError);
      }
      assertEquals(numbers(await collect(journal.read('a'))), [1]);
    });

    on('S5: only the claimant writes, and an older epoch is fenced', async (journal, { reopen }) => {
      await assertRejects(() => journal.append('a', eventsOf(1), 0, writerOf(1)), FencedError);
      const { writer: old } = await journal.claim('a', writerOf(5));
      await journal.append('a', eventsOf(1), 0, old);
      const claim = await journal.claim('a', writerOf(6));
      assertEquals(claim.highestSeq, 1);
      await assertRejects(() => journal.append('a', eventsOf('late'), 1, old), FencedError);
      await assertRejects(() => journal.append('a', eventsOf('later'), 1, writerOf(7)), FencedError);
      await assertRejects(() => journal.claim('a', old), FencedError);
      await assertRejects(() => journal.claim('a', writerOf(6, 'another')), FencedError);
      const again = reopen === undefined ? journal : await reopen();
      await assertRejects(() => again.append('a', eventsOf('late'), 1, old), FencedError);
      await again.append('a', eventsOf(2), 1, claim.writer);
      assertEquals(payloads(await collect(again.read('a'))), [1, 2]);
    });

    on('rule 10: a claim may be repeated by its owner', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(5));
      await journal.append('a', eventsOf(1), 0, writer);
      const second = await journal.claim('a', writerOf(5));
      assertEquals(second.writer, writer);
      await journal.append('a', eventsOf(2), second.highestSeq, second.writer);
    });

    on(
      'rule 10: a higher claim of another cluster makes a starter go above it, and its successors too',
      async (journal) => {
        const { writer: foreign } = await journal.claim('a', writerOf(1_000, 'u', 'other'));
        const { writer: mine } = await journal.claim('a', writerOf(10, 'v', 'mine'));
        assertEquals(mine.epoch > 1_000, true);
        await assertRejects(() => journal.append('a', eventsOf('no'), 0, foreign), FencedError);
        await journal.append('a', eventsOf(1), 0, mine);
        const { writer: next } = await journal.claim('a', writerOf(11, 'w', 'mine'));
        assertEquals(next.epoch > mine.epoch, true);
        await assertRejects(() => journal.append('a', eventsOf('no'), 1, mine), FencedError);
        await assertRejects(() => journal.claim('a', writerOf(10, 'v', 'mine')), FencedError);
        await journal.append('a', eventsOf(2), 1, next);
      },
    );

    on('R129: an append of many events is whole or absent', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      await assertRejects(
        () => journal.append('a', eventsOf(1, () => {}, 3), 0, writer),
        SerializationError,
      );
      assertEquals(await journal.highestSeq('a'), 0);
      await journal.append('a', eventsOf(...Array(500).keys()), 0, writer);
      assertEquals((await collect(journal.read('a'))).length, 500);
    });

    on('an append over the limit of bytes is refused as a value is, and nothing is written', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      const half = { payload: new Uint8Array(limits.appendBytes / 2) };
      await assertRejects(() => journal.append('a', [half, half], 0, writer), SerializationError, 'at most 67108864');
      assertEquals(await journal.highestSeq('a'), 0);
      await journal.append('a', eventsOf('small'), 0, writer);
    });

    on('R129: tags, their limits, and reading by tag in the order of writing', async (journal, { reopen }) => {
      const { writer: a } = await journal.claim('a', writerOf(1));
      const { writer: b } = await journal.claim('b', writerOf(1));
      await journal.append('a', [{ payload: 1, tags: ['red', 'big'] }, { payload: 2 }], 0, a);
      await journal.append('b', [{ payload: 3, tags: ['red', 'red'] }], 0, b);
      await journal.append('a', [{ payload: 4, tags: ['red'] }], 2, a);
      for (const tags of [['a,b'], [''], ['x'.repeat(256)], ['a\nb'], Array(65).fill('t')]) {
        await assertRejects(() => journal.append('a', [{ payload: 5, tags }], 3, a), OptionsError);
      }
      const again = reopen === undefined ? journal : await reopen();
      const red = await collect(again.readByTag('red'));
      assertEquals(red.map(({ persistenceId, sequenceNr }) => `${persistenceId}${sequenceNr}`), ['a1', 'b1', 'a3']);
      assertEquals(red[0]?.tags, ['red', 'big']);
      assertEquals(red[1]?.tags, ['red']);
      assertEquals(payloads(await collect(again.readByTag('red', red[0]?.offset))), [3, 4]);
      assertEquals(await collect(again.readByTag('red', red[2]?.offset)), []);
      assertEquals(payloads(await collect(again.readByTag('big'))), [1]);
      await again.delete('a', 1);
      assertEquals(payloads(await collect(again.readByTag('red'))), [3, 4]);
    });

    on('R130: ids are checked before anything is written', async (journal) => {
      for (const id of ['', '.', '..', 'a/b', 'a\\b', 'a\u0000', 'x'.repeat(256), '\ud800']) {
        await assertRejects(() => journal.claim(id, writerOf(1)), OptionsError);
        await assertRejects(() => journal.append(id, eventsOf(1), 0, writerOf(1)), OptionsError);
      }
      assertEquals(await collect(journal.read('a/b')), []);
      assertEquals(await journal.highestSeq('..'), 0);
      for (const id of ['ü…✓', 'x'.repeat(255), 'A', 'a', 'a%2Fb', "it's; drop", 'con', ' ']) {
        const { writer } = await journal.claim(id, writerOf(1));
        await journal.append(id, eventsOf(id), 0, writer);
      }
      for (const id of ['ü…✓', 'x'.repeat(255), 'A', 'a', 'a%2Fb', "it's; drop", 'con', ' ']) {
        assertEquals(payloads(await collect(journal.read(id))), [id]);
      }
    });

    on('R135: payloads go through the codec', async (journal, { reopen }) => {
      const { writer } = await journal.claim('a', writerOf(1));
      const state = { list: [1] };
      const rich = [new Date(5), new Map([[1, 'x']]), new Set([2n]), new Uint8Array([1, 2]), undefined, null, {
        a: NaN,
      }];
      const appended = journal.append('a', eventsOf(state, ...rich), 0, writer);
      state.list.push(2);
      await appended;
      const again = reopen === undefined ? journal : await reopen();
      const read = payloads(await collect(again.read('a')));
      assertEquals(read, [{ list: [1] }, ...rich]);
      (read[0] as { list: number[] }).list.push(9);
      assertEquals(payloads(await collect(again.read('a', 1, 1))), [{ list: [1] }]);
    });

    on('numbers and names that are none are refused by name', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      for (const expected of [-1, 0.5, NaN, 2 ** 53]) {
        await assertRejects(() => journal.append('a', eventsOf(1), expected, writer), OptionsError, 'expectedSeq');
      }
      await assertRejects(() => journal.delete('a', -1), OptionsError, 'toSeq');
      await assertRejects(() => collect(journal.read('a', -1)), OptionsError, 'fromSeq');
      await assertRejects(() => journal.claim('a', writerOf(-1)), OptionsError, 'epoch');
      for (const bad of ['', 'u\u0000', 'u\ud800', 'x'.repeat(256)]) {
        await assertRejects(() => journal.claim('a', writerOf(2, bad)), OptionsError, 'uid');
        await assertRejects(() => journal.claim('a', writerOf(2, 'u', bad)), OptionsError, 'clusterId');
      }
    });

    on('reading goes on in order beside writers', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      await journal.append('a', eventsOf(...Array(300).keys()), 0, writer);
      const seen: number[] = [];
      for await (const event of journal.read('a', 1, 300)) {
        if (event.sequenceNr === 100) await journal.append('a', eventsOf('more'), 300, writer);
        seen.push(event.sequenceNr);
      }
      assertEquals(seen, Array.from({ length: 300 }, (_, index) => index + 1));
      for await (const event of journal.read('a')) if (event.sequenceNr === 10) break;
      assertEquals(await journal.highestSeq('a'), 301);
    });

    on('R131, FB-112: a reader that stops pulling stops the reading', async (journal, { taken }) => {
      const { writer } = await journal.claim('a', writerOf(1));
      const event = { payload: 'x'.repeat(200), tags: ['all'] };
      for (let seq = 0; seq < 4_000; seq += 100) await journal.append('a', Array(100).fill(event), seq, writer);
      for (const reader of [() => journal.read('a'), () => journal.readByTag('all')]) {
        const start = taken();
        assertEquals((await collect(reader())).length, 4_000);
        const whole = taken() - start;
        const before = taken();
        const iterator = reader()[Symbol.asyncIterator]();
        for (let count = 0; count < 10; count += 1) assertEquals((await iterator.next()).done, false);
        const first = taken() - before;
        assertGreater(first, 0);
        assertLess(4 * first, whole);
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 0));
        assertEquals(taken() - before, first);
        await iterator.return?.();
        assertEquals(taken() - before, first);
      }
    });

    on('FB-116: many writers at once, nothing mixed up', async (journal, { reopen }) => {
      const ids = Array.from({ length: 10 }, (_, index) => `actor-${index}`);
      await Promise.all(ids.map(async (id) => {
        const { writer } = await journal.claim(id, writerOf(1));
        for (let seq = 0; seq < 20; seq += 1) await journal.append(id, eventsOf({ id, seq }), seq, writer);
      }));
      const again = reopen === undefined ? journal : await reopen();
      for (const id of ids) {
        assertEquals(
          payloads(await collect(again.read(id))),
          Array.from({ length: 20 }, (_, seq) => ({ id, seq })),
        );
      }
    });

    on('after close every call is refused, and close may be repeated', async (journal) => {
      const { writer } = await journal.claim('a', writerOf(1));
      const last = journal.append('a', eventsOf(1), 0, writer);
      await journal.close();
      await journal.close();
      assertEquals(numbers(await last), [1]);
      await assertRejects(() => journal.append('a', eventsOf(2), 1, writer), Error, 'closed');
      await assertRejects(() => journal.claim('a', writer), Error, 'closed');
    });
  });
}
