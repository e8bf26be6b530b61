import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import type { FromCaller, ToCaller } from '../../src/callers/messages.ts';
import { limits } from '../../src/limits.ts';
import { closeCodes } from '../../src/transport/close_codes.ts';
import type { Envelope } from '../../src/wire/batch.ts';
import { codes } from '../../src/wire/codes.ts';
import { LeanCodec } from '../../src/wire/lean_codec.ts';
import { counterClass, Journal } from '../singleton/fixtures.ts';
import { CallerWorld, type Rogue } from './caller_world.ts';

const bodies = new LeanCodec({ maxBytes: limits.callerMessageBytes });

async function ready() {
  const world = new CallerWorld();
  const journal = new Journal();
  await world.nodesWithCallers(3);
  const Counter = counterClass(journal);
  for (const { cluster } of world.nodes) cluster.singleton.start(Counter);
  await world.until(() => journal.live === 1);
  const [host, gateway] = world.nodes;
  return { world, journal, host: host!, gateway: gateway!, hostUid: host!.cluster.uid };
}

const hello: FromCaller = { kind: 'hello', session: 1 };

function told(host: string, seq: number, value: unknown, epoch: number, receiver: string | null = null): FromCaller {
  const body = bodies.encode(value);
  return { kind: 'told', host, told: { name: 'counter', epoch, seq, repeat: false, receiver, body } };
}

function open(host: string, name = 'counter'): FromCaller {
  return { kind: 'open', host, start: { name, base: 1, next: 1, lastSentEpoch: 0, repeat: false } };
}

/** Opens its stream, and gives the epoch of the host. */
async function opened(world: CallerWorld, rogue: Rogue, host: string): Promise<number> {
  rogue.say(open(host));
  const answer = (): Extract<ToCaller, { kind: 'answer' }> | undefined =>
    rogue.got.find((message) => message.kind === 'answer' && message.envelope[0] === codes.streamOpened) as never;
  await world.until(() => answer() !== undefined);
  return answer()!.envelope[2] as number;
}

describe('what a caller with a token may not do', () => {
  const endings: readonly [
    why: string,
    grant: string,
    code: number,
    messages: (host: string) => (FromCaller | Envelope)[],
  ][] = [
    ['say anything before its hello', 'all', closeCodes.malformedFrame, () => [{ kind: 'ping' }]],
    ['say hello twice', 'all', closeCodes.malformedFrame, () => [hello, hello]],
    ['say hello as nobody', 'all', closeCodes.malformedFrame, () => [{ kind: 'hello', session: 0 }]],
    [
      'use a singleton that its token does not name',
      'all',
      closeCodes.forbidden,
      () => [hello, { kind: 'use', name: 'secret' }],
    ],
    ['open a stream to one', 'all', closeCodes.forbidden, (host) => [hello, open(host, 'secret')]],
    ['tell where it may only ask', 'asker', closeCodes.forbidden, (host) => [hello, told(host, 1, 1, 1)]],
    ['ask where it may only tell', 'teller', closeCodes.forbidden, (host) => [hello, told(host, 1, 1, 1, 'r-1')]],
    ['gossip', 'all', closeCodes.malformedFrame, () => [hello, [codes.gossip, {}]]],
    ['join', 'all', closeCodes.malformedFrame, () => [hello, [codes.join, {}]]],
    ['beat like a member', 'all', closeCodes.malformedFrame, () => [hello, [codes.heartbeat, 1]]],
    ['vote', 'all', closeCodes.malformedFrame, () => [hello, [codes.gatePong, 1]]],
    [
      'ask a host to stand down',
      'all',
      closeCodes.malformedFrame,
      () => [hello, [codes.handOverRequest, 'counter', 'n', 9]],
    ],
    ['tell any other actor', 'all', closeCodes.malformedFrame, () => [hello, [codes.tell, '/user/a', null, 1, 0]]],
    ['stop an actor', 'all', closeCodes.malformedFrame, () => [hello, [codes.stop, '/user/a', 0]]],
    ['watch an actor', 'all', closeCodes.malformedFrame, () => [hello, [codes.watch, '/user/a', 0]]],
    ['spawn', 'all', closeCodes.malformedFrame, () => [hello, [codes.spawn, 1]]],
    ['vote about leases', 'all', closeCodes.malformedFrame, () => [hello, [codes.leaseAsk, 'x']]],
    [
      'speak for another caller',
      'all',
      closeCodes.malformedFrame,
      () => [hello, [codes.callerDeliver, 'caller:1', 9, 'counter', 1, 1, false, null, new Uint8Array()]],
    ],
    [
      'answer like a gateway',
      'all',
      closeCodes.malformedFrame,
      () => [hello, [codes.callerAnswer, 'caller:1', [codes.acknowledge, 'counter', 99, []]]],
    ],
    ['open a window that is too wide', 'all', closeCodes.malformedFrame, (host) => [
      hello,
      [codes.open, host, 'counter', 1, limits.callerWindow + 2, 0, false],
    ]],
    ['name a receiver that is a path', 'all', closeCodes.malformedFrame, (host) => [
      hello,
      [codes.told, host, 'counter', 1, 1, false, '../user/x', new Uint8Array()],
    ]],
    ['send an envelope with too few fields', 'all', closeCodes.malformedFrame, (host) => [hello, [codes.told, host]]],
    ['send what is no batch', 'all', closeCodes.malformedFrame, () => []],
  ];
  for (const [why, grant, code, messages] of endings) {
    test(`${why}: its connection ends with a code, and nobody else notices`, async () => {
      const { world, journal, gateway, hostUid } = await ready();
      const rogue = await world.rogue(gateway, grant);
      const list = messages(hostUid);
      if (list.length > 0) rogue.say(...list);
      else rogue.raw(new Uint8Array([1, 2, 3, 4, 5]));
      await world.until(() => rogue.close !== undefined, 5_000);
      assertEquals(rogue.close?.code, code);
      await world.pass(1_000);
      assertEquals([journal.live, journal.got.length, journal.lines.length], [1, 0, 1]);
      for (const { cluster } of world.nodes) assertEquals(cluster.upMembers().length, 3);
    });
  }

  test('sends faster than its grant allows: it is cut off, and what it sent until then is bounded', async () => {
    const { world, journal, gateway, hostUid } = await ready();
    const rogue = await world.rogue(gateway, 'slow');
    rogue.say(hello);
    const epoch = await opened(world, rogue, hostUid);
    for (let at = 0; at < 40; at += 1) {
      rogue.say(...Array.from({ length: 100 }, (_, seq) => told(hostUid, at * 100 + seq + 1, seq, epoch)));
    }
    await world.until(() => rogue.close !== undefined, 5_000);
    assertEquals(rogue.close?.code, closeCodes.tooFast);
    await world.pass(500);
    assert(journal.got.length <= limits.callerWindow + 300, `${journal.got.length} got through`);
    const large = await world.rogue(gateway, 'slow');
    large.say(hello);
    const huge = (seq: number): FromCaller => told(hostUid, seq, 'x'.repeat(200_000), epoch);
    for (let seq = 1; seq < 100; seq += 1) large.say(huge(seq));
    await world.until(() => large.close !== undefined, 5_000);
    assertEquals(large.close?.code, closeCodes.tooFast);
  });

  test('connects again and again: what it may send does not come again with a connection', async () => {
    const { world, journal, gateway, hostUid } = await ready();
    const began = world.environment.clock.now();
    let connected = 0;
    let refused = 0;
    for (let at = 0; at < 60; at += 1) {
      const rogue = await world.rogue(gateway, 'slow');
      if (rogue.close !== undefined) {
        refused += 1;
        continue;
      }
      connected += 1;
      rogue.say(hello);
      const epoch = await opened(world, rogue, hostUid);
      for (let part = 0; part < 4; part += 1) {
        rogue.say(...Array.from({ length: 100 }, (_, seq) => told(hostUid, part * 100 + seq + 1, seq, epoch)));
      }
      await world.pass(20);
      rogue.link?.close(1000, 'again');
      await world.pass(20);
    }
    const seconds = (world.environment.clock.now() - began) / 1_000;
    // Of `slow`: two buckets, each with 1 200 at first and 200 a second.
    const bound = 2 * (1_200 + seconds * 200);
    assert(journal.got.length > 1_200 && journal.got.length <= bound, `${journal.got.length} of ${bound}`);
    assert(connected > 3 && refused > 0 && seconds < 20, `${connected} connected, ${refused} refused, ${seconds} s`);
    // Once it is quiet there is room again.
    await world.pass(10_000);
    assertEquals((await world.rogue(gateway, 'slow')).close, undefined);
  });

  test('makes no node know a name that nobody has started', async () => {
    const { world, gateway, host } = await ready();
    const rogue = await world.rogue(gateway, 'slow');
    rogue.say(hello);
    for (let at = 0; at < 50; at += 1) {
      rogue.say({ kind: 'use', name: `made-up-${at}` }, open(host.cluster.uid, `made-up-${at}`));
    }
    await world.pass(1_000);
    for (const { cluster } of world.nodes) {
      assertEquals([...cluster.singleton.all()].filter(({ name }) => name.startsWith('made-up')), []);
    }
    assert(rogue.got.some((message) => message.kind === 'host' && message.uid === undefined));
  });

  test('says nothing: after three times the keep-alive it is let go', async () => {
    const { world, gateway } = await ready();
    const rogue = await world.rogue(gateway);
    rogue.say(hello);
    await world.until(() => rogue.close !== undefined, limits.callerPingMs * 6);
    assertEquals(rogue.close?.code, closeCodes.silent);
  });

  test('more callers than the grant allows at once are refused; one that leaves makes room', async () => {
    const { world, gateway } = await ready();
    const first = await world.rogue(gateway, 'slow');
    const second = await world.rogue(gateway, 'slow');
    const third = await world.rogue(gateway, 'slow');
    assertEquals([first.close, second.close], [undefined, undefined]);
    assertEquals(third.close?.code, 4429);
    first.say(hello, { kind: 'bye' });
    await world.until(() => first.close !== undefined);
    assertEquals((await world.rogue(gateway, 'slow')).close, undefined);
  });

  test('a second connection of one caller takes the place of the first, an older one does not', async () => {
    const { world, gateway } = await ready();
    const first = await world.rogue(gateway, 'all', 'caller:twin');
    first.say({ kind: 'hello', session: 2 });
    const second = await world.rogue(gateway, 'all', 'caller:twin');
    second.say({ kind: 'hello', session: 1 });
    await world.until(() => second.close !== undefined);
    assertEquals([first.close, second.close?.code], [undefined, closeCodes.replaced]);
    const third = await world.rogue(gateway, 'all', 'caller:twin');
    third.say({ kind: 'hello', session: 3 });
    await world.until(() => first.close !== undefined);
    assertEquals(first.close?.code, closeCodes.replaced);
  });

  test('content that does not decode, or names actors of others, counts as failed and stops nothing', async () => {
    const { world, journal, gateway, host, hostUid } = await ready();
    const rogue = await world.rogue(gateway);
    rogue.say(hello);
    const epoch = await opened(world, rogue, hostUid);
    const bad = (
      seq: number,
      body: Uint8Array,
    ): Envelope => [codes.told, hostUid, 'counter', epoch, seq, false, null, body];
    // A ref to an actor of a node, spelled as nodes spell it; one to a singleton; bytes that are nothing.
    const evil = new LeanCodec({
      maxBytes: 10_000,
      refs: { toWire: (ref) => (ref as { wire: never }).wire, fromWire: () => undefined },
    });
    const ref = (...wire: unknown[]) => evil.encode({ reply: Object.assign(new (class Ref {})(), { wire }) });
    rogue.say(
      bad(1, ref(host.address, hostUid, '/user/x', 0)),
      bad(2, ref('', 'singleton', 'secret', 0)),
      bad(3, ref('', 'caller', 'caller:other/r-1', 0)),
      bad(4, new Uint8Array([0xff, 1, 2])),
      told(hostUid, 5, 42, epoch),
    );
    await world.until(() => journal.got.length === 1);
    assertEquals(journal.got, [42]);
    assertEquals(host.system.deadLetters.countOf('unserializable'), 4);
    await world.until(() =>
      rogue.got.some((message) =>
        message.kind === 'answer' && message.envelope[0] === codes.acknowledge && message.envelope[2] === 5
      )
    );
    assertEquals(host.cluster.singleton.find('counter')?.manager.host.failed, 4);
  });

  test('callers learn no address of a node', async () => {
    const { world, gateway, host, hostUid } = await ready();
    const rogue = await world.rogue(gateway);
    rogue.say(hello, { kind: 'use', name: 'counter' });
    const [, , third] = world.nodes;
    // A member that is not the host: it answers with a hint.
    rogue.say(open(third!.cluster.uid));
    await world.until(() => rogue.got.some((message) => message.kind === 'answer'));
    const refusal = rogue.got.find((message) => message.kind === 'answer') as Extract<ToCaller, { kind: 'answer' }>;
    assertEquals(refusal.envelope[0], codes.refuse);
    assertEquals(refusal.envelope[4], hostUid);
    const text = JSON.stringify(rogue.got);
    for (const { address } of world.nodes) assert(!text.includes(address), text);
    assertStringIncludes(text, host.cluster.uid);
  });
});

describe('what a host remembers of callers', () => {
  test('a caller that comes back after the time of grace is told that nobody knows what became of its messages', async () => {
    const { world, journal, gateway, host } = await ready();
    const caller = await world.connect({ nodes: [gateway] });
    const counter = caller.singleton.ref('counter');
    counter.tell(1);
    await world.until(() => caller.ledger('counter').acknowledged === 1);
    const filters = () =>
      [...host.cluster.singleton.find('counter')!.manager.host.streams()].filter((id) => id.startsWith('caller:'));
    assertEquals(filters().length, 1);
    // Sent, handled, and the acknowledgement is lost with the connection.
    world.network.cutOneWay(gateway.address, 'caller:1');
    counter.tell(2);
    await world.until(() => journal.got.length === 2);
    world.network.cut('caller:1', gateway.address);
    for (let minutes = 0; minutes < 14; minutes += 1) {
      for (let at = 0; at < 12; at += 1) await world.environment.elapse(5_000);
    }
    assertEquals(filters(), []);
    world.network.heal('caller:1', gateway.address);
    await world.until(() => caller.state === 'connected' && caller.ledger('counter').buffered === 0, 120_000);
    const { acknowledged, outcomeUnknown } = caller.ledger('counter');
    assertEquals([acknowledged, outcomeUnknown], [1, 1]);
    counter.tell(3);
    await world.until(() => journal.got.length === 3);
    assertEquals(journal.got, [1, 2, 3]);
  });

  test('within it nothing is doubled: the next connection settles what the last one had sent', async () => {
    const { world, journal, gateway } = await ready();
    const caller = await world.connect({ nodes: [gateway] });
    const counter = caller.singleton.ref('counter');
    counter.tell(1);
    await world.until(() => caller.ledger('counter').acknowledged === 1);
    world.network.cutOneWay(gateway.address, 'caller:1');
    counter.tell(2);
    await world.until(() => journal.got.length === 2);
    for (let at = 0; at < 60; at += 1) await world.environment.elapse(5_000);
    world.network.heal('caller:1', gateway.address);
    await world.until(() => caller.ledger('counter').acknowledged === 2, 120_000);
    assertEquals(journal.got, [1, 2]);
  });

  test('a caller that says good-bye is forgotten at once; one that only listens is not', async () => {
    const { world, gateway, host } = await ready();
    const streams = () =>
      [...host.cluster.singleton.find('counter')!.manager.host.streams()].filter((id) => id.startsWith('caller:'));
    const leaving = await world.connect({ nodes: [gateway] });
    const staying = await world.connect({ nodes: [gateway] });
    leaving.singleton.ref('counter').tell(1);
    staying.singleton.ref('counter').tell(2);
    await world.until(() => streams().length === 2);
    await world.get(leaving.close());
    await world.until(() => streams().length === 1);
    for (let at = 0; at < 200; at += 1) await world.environment.elapse(5_000);
    assertEquals(streams().length, 1);
    assertEquals(staying.state, 'connected');
  });
});
