import { describe, test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import { StreamFilter } from '../../src/singleton/delivery_filter.ts';
import { DeliveryHost, type Receipt } from '../../src/singleton/delivery_host.ts';
import { InFlight } from '../../src/singleton/in_flight.ts';
import { SenderStream, type StreamPort } from '../../src/singleton/sender_stream.ts';
import { random } from './manager_world.ts';

const message = (seq: number, bytes = 1) => ({ seq, message: `m${seq}`, sender: undefined, bytes, repeat: false });

describe('in flight', () => {
  test('settles in any order, and the base follows the contiguous part', () => {
    const flight = new InFlight();
    for (let n = 0; n < 100; n += 1) flight.push(`m${n}`, undefined, n);
    assert(flight.settle(2));
    assert(!flight.settle(2));
    assertEquals([flight.base, flight.unsettled, flight.bytes], [1, 99, 99 * 100 / 2 - 1]);
    assert(flight.settle(1));
    assertEquals(flight.base, 3);
    assertEquals(flight.message(3), 'm2');
    assert(!flight.settle(101) && !flight.settle(0));
  });
});

describe('filter', () => {
  test('rule 14: a prefix, exceptions above it, and absorption', () => {
    const filter = new StreamFilter(10, [12]);
    assertEquals([filter.offer(13), filter.offer(11), filter.offer(11)], ['gap', 'accept', 'duplicate']);
    assertEquals([filter.offer(12), filter.offer(13)], ['duplicate', 'accept'], 'twelve was handled elsewhere');
    filter.processed(13);
    assertEquals(filter.snapshot('s'), { stream: 's', prefix: 10, exceptions: [12, 13] });
    filter.processed(11);
    assertEquals(filter.snapshot('s'), { stream: 's', prefix: 13, exceptions: [] });
  });

  test('a sender that gave up on messages moves the base', () => {
    const filter = new StreamFilter(0);
    filter.advance(6);
    assertEquals([filter.offer(5), filter.offer(6)], ['duplicate', 'accept']);
    filter.advance(3);
    assertEquals(filter.prefix, 5);
  });
});

/** One sender and a host that moves, over a link that is cut at random: the model is a plain list of numbers. */
function model(seed: number): void {
  const next = random(seed);
  const handled: number[] = [];
  let inbox: [message: unknown, receipt: Receipt][] = [];
  let acks: (() => void)[] = [];
  let wire: (() => void)[] = [];
  let told = 0;
  const makeHost = () =>
    new DeliveryHost({
      deliver: (message, _sender, receipt) => inbox.push([message, receipt]),
      acknowledge: (_stream, prefix, others) => acks.push(() => void sender.acknowledged(prefix, others)),
      resume: () => {},
      wantsFlush: () => {},
    });
  let host = makeHost();
  let epoch = 1;
  host.begin(epoch, 1, []);
  const port: StreamPort = {
    weigh: () => 1,
    transmit: (target, seq, message, from, repeat) => {
      if (next() < 0.05) return 'wait';
      wire.push(() => {
        if (
          target.epoch === host.epoch && host.offer('s', { seq, message, sender: from, bytes: 1, repeat }) === 'gap'
        ) {
          acks.push(() => sender.closed());
        }
      });
      return 1;
    },
    lost: (message, _sender, reason) => {
      throw new Error(`seed ${seed}: lost ${message}: ${reason}`);
    },
  };
  const sender: SenderStream = new SenderStream(10_000, 10_000, 'drop-newest');
  sender.attach(port);
  // On one link everything keeps its order: an open is read after the messages sent before it.
  const open = () => {
    const { base, next: upTo, lastSentEpoch } = sender;
    wire.push(() => {
      const outcome = host.open('s', { name: 'x', base, next: upTo, lastSentEpoch, repeat: false })!;
      const { verdict } = outcome;
      assert(verdict === 'continued');
      const target = { uid: 'h', address: 'h:1', epoch };
      acks.push(() => sender.opened({ target, ...outcome, verdict }, 'at-most-once'));
    });
  };
  const move = () => {
    const marks = host.end();
    inbox = [];
    host = makeHost();
    epoch += 1;
    host.begin(epoch, 1, marks);
  };
  const deliver = () => wire.shift()?.();
  const handle = () => {
    // A stash lets a later message overtake an earlier one.
    const [entry] = inbox.splice(next() < 0.8 ? 0 : Math.floor(next() * inbox.length), 1);
    if (!entry) return;
    handled.push(entry[0] as number);
    host.settled(entry[1], false);
  };
  for (let step = 0; step < 3_000; step += 1) {
    const what = next();
    if (what < 0.3 && step < 2_000) sender.tell(told++, undefined);
    else if (what < 0.55) deliver();
    else if (what < 0.8) handle();
    else if (what < 0.85) host.flush();
    else if (what < 0.9) acks.shift()?.();
    else if (what < 0.91 && step < 2_500) move();
    else if (what < 0.93 && step < 2_500) [wire, acks] = [[], []];
    else if (!sender.target || sender.target.epoch !== epoch || next() < 0.1) open();
    else sender.pump();
  }
  for (let round = 0; sender.buffered > 0 && round < 20_000; round += 1) {
    if (round % 500 === 0) open();
    sender.pump();
    deliver();
    handle();
    host.flush();
    acks.shift()?.();
  }
  const missing = Array.from({ length: told }, (_, n) => n).filter((n) => !handled.includes(n));
  const doubled = handled.filter((n, at) => handled.indexOf(n) !== at);
  assertEquals(
    { missing, doubled },
    { missing: [], doubled: [] },
    `seed ${seed}, base ${sender.base}, next ${sender.next}, wire ${wire.length}, acks ${acks.length}, inbox ${inbox.length}, waiting ${sender.waiting}, target ${
      JSON.stringify(sender.target)
    }, epoch ${epoch} ${JSON.stringify(host.state('s'))}`,
  );
  const ledger = sender.ledger();
  assertEquals([ledger.told, ledger.acknowledged, ledger.buffered], [told, told, 0], `seed ${seed}`);
}

describe('streams', () => {
  test('S3: over any moves, cuts and lost acknowledgements each message is handled exactly once', () => {
    for (let seed = 1; seed <= 200; seed += 1) model(seed);
  });

  test('a kill in the middle of a handler: that message is not sent again, the others are', () => {
    const delivered: [unknown, Receipt][] = [];
    const host = new DeliveryHost({
      deliver: (message, _sender, receipt) => delivered.push([message, receipt]),
      acknowledge: () => {},
      resume: () => {},
      wantsFlush: () => {},
    });
    host.begin(1, 1, []);
    host.open('s', { name: 'x', base: 1, next: 1, lastSentEpoch: 0, repeat: false });
    for (let seq = 1; seq <= 4; seq += 1) host.offer('s', message(seq));
    host.settled(delivered[0]![1], false);
    host.interrupted([delivered[2]![1], delivered[3]![1]]);
    assertEquals(host.end(), [{ stream: 's', prefix: 2, exceptions: [] }]);
    assertEquals(host.failed, 1);
  });
});
