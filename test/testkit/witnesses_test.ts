import { assertEquals, assertRejects } from '@std/assert';
import { describe, test } from 'node:test';
import { InstanceRegistry } from '../../src/testkit/instance_registry.ts';
import { Ledger } from '../../src/testkit/ledger.ts';
import type { SimProcess } from '../../src/testkit/sim_process.ts';
import { SimulationError, World } from '../../src/testkit/sim_world.ts';

function setUp(plannedOnly = false): { world: World; registry: InstanceRegistry; a: SimProcess; b: SimProcess } {
  const world = new World({ seed: 1 });
  const [a, b] = ['a', 'b'].map((name, i) => world.start(world.addHost(name, `10.0.0.${i}:1`, () => {})));
  if (a === undefined || b === undefined) throw new Error('not started');
  return { world, registry: new InstanceRegistry(world, plannedOnly), a, b };
}

async function breaks(world: World, what: string): Promise<void> {
  await assertRejects(() => world.advance(10), SimulationError, what);
}

describe('instance registry', () => {
  test('one after the other passes', async () => {
    const { world, registry, a, b } = setUp(true);
    const first = registry.born('s', a);
    registry.epoch(first, 1);
    registry.handling(first)();
    registry.terminated(first);
    const second = registry.born('s', b);
    registry.epoch(second, 2);
    registry.handling(second)();
    await world.advance(10);
    assertEquals(registry.living('s'), [second]);
  });

  test('S1: an older instance that handles after a younger was born', async () => {
    const { world, registry, a, b } = setUp();
    const first = registry.born('s', a);
    registry.handling(registry.born('s', b))();
    registry.handling(first);
    await breaks(world, 'S1: s on a/1');
  });

  test('S1: a birth while an older one is inside a handler', async () => {
    const { world, registry, a, b } = setUp();
    registry.handling(registry.born('s', a));
    registry.born('s', b);
    await breaks(world, 'handles a message');
  });

  test('a handler frozen in a suspended process is counted; waking up to handle more is not excused', async () => {
    const { world, registry, a, b } = setUp();
    const first = registry.born('s', a);
    registry.handling(first);
    a.suspend();
    const second = registry.born('s', b);
    await world.advance(10);
    assertEquals(registry.statistics.frozenHandlers, 1);
    registry.handling(second)();
    registry.handling(first);
    await breaks(world, 'S1');
  });

  test('a handler that was frozen may end once its process runs; one that begins then is not excused', async () => {
    const { world, registry, a, b } = setUp();
    const first = registry.born('s', a);
    const ended = registry.handling(first);
    a.suspend();
    await world.advance(5_000);
    a.resume('due');
    await world.advance(6);
    registry.born('s', b);
    await world.advance(10);
    assertEquals(registry.statistics.frozenHandlers, 1);
    ended();
    registry.handling(first);
    registry.born('s', b);
    await breaks(world, 'handles a message');
  });

  test('S1: planned moves allow no overlap of lives at all', async () => {
    const { world, registry, a, b } = setUp(true);
    registry.born('s', a);
    registry.born('s', b);
    await breaks(world, 'has not terminated');
  });

  test('a crashed process has no instances', async () => {
    const { world, registry, a, b } = setUp(true);
    registry.handling(registry.born('s', a));
    a.end('crash');
    registry.born('s', b);
    await world.advance(10);
  });

  test('S1: a handler after postStop', async () => {
    const { world, registry, a } = setUp();
    const only = registry.born('s', a);
    registry.terminated(only);
    registry.handling(only);
    await breaks(world, 'after its postStop');
  });

  test('an announced host-anyway excuses the instances that existed', async () => {
    const { world, registry, a, b } = setUp();
    const first = registry.born('s', a);
    registry.hostedAnyway('s');
    const second = registry.born('s', b);
    registry.handling(first)();
    await world.advance(10);
    registry.handling(registry.born('s', a))();
    registry.handling(second);
    await breaks(world, 'S1: s on b/1');
  });

  test('a fork is counted, and its survivor may go on', async () => {
    const { world, a, b } = setUp();
    const registry = new InstanceRegistry(world, false, (older, younger) => older.process !== younger.process);
    const first = registry.born('s', a);
    registry.handling(registry.born('s', b))();
    registry.handling(first)();
    await world.advance(10);
    assertEquals(registry.statistics.forks, 1);
    registry.handling(registry.born('s', a))();
    registry.handling(first);
    await breaks(world, 'S1: s on a/1');
  });

  test('S5: in planned moves epochs grow, but for a restart in place', async () => {
    const { world, registry, a, b } = setUp(true);
    const first = registry.born('s', a);
    registry.epoch(first, 5);
    registry.terminated(first);
    const second = registry.born('s', a);
    registry.epoch(second, 5);
    registry.terminated(second);
    await world.advance(10);
    registry.epoch(registry.born('s', b), 5);
    await breaks(world, 'S5');
  });

  test('S5: elsewhere an epoch is above all that its node has seen', async () => {
    const { world, registry, a, b } = setUp();
    registry.epoch(registry.born('s', a), 9, 'c', 0);
    registry.epoch(registry.born('s', b), 5, 'c', 4);
    await world.advance(10);
    registry.epoch(registry.born('s', b), 9, 'c', 9);
    await breaks(world, 'which its node has seen');
  });
});

describe('ledger', () => {
  const counters = (told: number, acknowledged: number, deadLettered = 0, buffered = 0, outcomeUnknown = 0) => (
    { told, acknowledged, deadLettered, buffered, outcomeUnknown }
  );
  const planned = () => {
    const world = new World({ seed: 1 });
    return { world, ledger: new Ledger(world, () => ({ exact: true, atLeastOnce: false })) };
  };
  const faulty = (atLeastOnce = false) => {
    const world = new World({ seed: 1 });
    return { world, ledger: new Ledger(world, () => ({ exact: false, atLeastOnce })) };
  };

  test('a balanced ledger passes', async () => {
    const { world, ledger } = planned();
    for (let i = 0; i < 3; i++) {
      const message = ledger.told('x');
      ledger.handled(message);
      ledger.processed(message);
    }
    ledger.audit('x', counters(3, 3));
    await world.advance(1);
  });

  test('S3: planned moves lose and reorder nothing', async () => {
    const { world, ledger } = planned();
    ledger.told('x');
    ledger.handled(ledger.told('x'));
    await breaks(world, 'S3: message 2');
    const other = planned();
    other.ledger.deadLettered(other.ledger.told('x'), 'outcome-unknown');
    await breaks(other.world, 'dead letter');
  });

  test('S3: at most once means once, and in order', async () => {
    const { world, ledger } = faulty();
    const message = ledger.told('x');
    ledger.handled(message);
    ledger.handled(message);
    await breaks(world, 'twice, or out of order');
    const { world: tolerant, ledger: repeated } = faulty(true);
    const again = repeated.told('x');
    repeated.handled(again);
    repeated.handled(again);
    await tolerant.advance(1);
    assertEquals(repeated.statistics.repeated, 1);
  });

  test('S3: a dead letter with a certain reason was not processed', async () => {
    const { world, ledger } = faulty();
    const message = ledger.told('x');
    ledger.handled(message);
    ledger.processed(message);
    ledger.deadLettered(message, 'buffer-full');
    await breaks(world, 'though it was processed');
    const unknown = faulty();
    const lost = unknown.ledger.told('x');
    unknown.ledger.handled(lost);
    unknown.ledger.processed(lost);
    unknown.ledger.deadLettered(lost, 'outcome-unknown');
    await unknown.world.advance(1);
  });

  test('S3: books that do not balance, and a message that vanished', async () => {
    for (const own of [counters(2, 1), counters(3, 3), counters(2, 2), counters(2, 1, 1), counters(2, 1, 0, 0, 1)]) {
      const { world, ledger } = faulty();
      const message = ledger.told('x');
      ledger.handled(message);
      ledger.processed(message);
      ledger.told('x');
      ledger.audit('x', own);
      await breaks(world, 'S3');
    }
    const { world, ledger } = faulty();
    ledger.told('x');
    ledger.audit('x', counters(1, 0, 0, 1));
    await world.advance(1);
  });
});
