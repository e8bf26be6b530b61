import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { Actor } from '../../src/mod.ts';
import type { CellHooks, Gate } from '../../src/actor/spawn_options.ts';
import { limits } from '../../src/limits.ts';
import { acting, deadLettersOf, deferred, fixture, recording, spawnManaged } from './system_fixture.ts';

/** Writes what happens to envelopes with receipts. */
function receipts(events: string[]): CellHooks {
  return {
    settled: (receipt, failed) => events.push(`settled ${String(receipt)}${failed ? ' failed' : ''}`),
    returned: (message, _sender, receipt) => events.push(`returned ${String(message)} ${String(receipt)}`),
  };
}

function gate(): Gate & { set(open: boolean): void; readonly waiting: () => number } {
  let isOpen = true;
  const waiting = new Set<() => void>();
  return {
    open: () => isOpen,
    onOpen: (run) => {
      waiting.add(run);
      return () => waiting.delete(run);
    },
    set: (open) => {
      isOpen = open;
      if (open) { for (const run of [...waiting]) run(); }
    },
    waiting: () => waiting.size,
  };
}

describe('handling messages', () => {
  test('messages are handled in order, also those told before the actor has started', () => {
    const { env, system } = fixture();
    const seen: number[] = [];
    const ref = system.spawn(acting<number>((message) => seen.push(message)), 'a');
    for (let i = 0; i < 1_000; i += 1) ref.tell(i);
    assertEquals(seen, []);
    env.runTurns();
    assertEquals(seen, Array.from({ length: 1_000 }, (_, i) => i));
  });

  test('an async handler holds the next message back until it has settled', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ends = [deferred(), deferred()];
    const ref = system.spawn(
      acting<number>(async (message) => {
        events.push(`begin ${message}`);
        await ends[message]?.promise;
        events.push(`end ${message}`);
      }),
      'a',
    );
    ref.tell(0);
    ref.tell(1);
    await env.settle();
    assertEquals(events, ['begin 0']);
    ends[0]?.resolve();
    await env.settle();
    assertEquals(events, ['begin 0', 'end 0', 'begin 1']);
    ends[1]?.resolve();
    await env.settle();
    assertEquals(events.at(-1), 'end 1');
  });

  test('any thenable counts as a promise, also one that answers at once or twice', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = system.spawn(
      acting<string>((message) => {
        events.push(message);
        return {
          then: (done: () => void) => {
            done();
            done();
          },
        };
      }),
      'a',
    );
    for (const message of ['a', 'b', 'c']) ref.tell(message);
    await env.settle();
    assertEquals(events, ['a', 'b', 'c']);
  });

  test('a thenable whose then throws is a failure', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(
      acting<string>(() => ({
        then: () => {
          throw new Error('then');
        },
      })),
      'a',
    );
    ref.tell('a');
    await env.settle();
    assertEquals(env.logsAt('error').length, 1);
  });

  test('the sender stays right across await', async () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const echo = system.spawn(
      acting<string>(async (message, context) => {
        const before = context.sender.path;
        await Promise.resolve();
        seen.push(`${message} ${before} ${context.sender.path}`);
      }),
      'echo',
    );
    const [a, b] = ['a', 'b'].map((name) => system.spawn(acting(() => {}), name));
    echo.tell('1', a);
    echo.tell('2', b);
    echo.tell('3');
    await env.settle();
    assertEquals(seen, ['1 /user/a /user/a', '2 /user/b /user/b', '3 /deadLetters /deadLetters']);
  });
});

describe('a bounded mailbox', () => {
  test('FB-026: drop-newest gives the new message up and does not fail the sender', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = system.spawn(recording(events), 'a', { mailbox: { capacity: 2 } });
    for (const message of ['1', '2', '3', '4']) ref.tell(message);
    env.runTurns();
    assertEquals(events.slice(2), ['1', '2']);
    assertEquals(deadLettersOf(system), ['mailbox-overflow 3', 'mailbox-overflow 4']);
    assertEquals(env.logsAt('warn').length, 1, 'warned once');
  });

  test('drop-oldest gives the oldest message up', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = system.spawn(recording(events), 'a', { mailbox: { capacity: 2, overflow: 'drop-oldest' } });
    for (const message of ['1', '2', '3', '4']) ref.tell(message);
    env.runTurns();
    assertEquals(events.slice(2), ['3', '4']);
    assertEquals(deadLettersOf(system), ['mailbox-overflow 1', 'mailbox-overflow 2']);
  });

  for (const overflow of ['drop-newest', 'drop-oldest'] as const) {
    test(`R137: a stop and a notice of termination pass a full mailbox (${overflow})`, async () => {
      const { env, system } = fixture();
      const events: string[] = [];
      const busy = deferred();
      const other = system.spawn(acting(() => {}), 'other');
      const ref = system.spawn(
        () =>
          new (class extends Actor<string> {
            override preStart(): void {
              this.context.watch(other);
            }
            override onReceive(message: string): void | Promise<void> {
              events.push(message);
              return message === 'wait' ? busy.promise : undefined;
            }
            override onTerminated(): void {
              events.push('terminated');
            }
            override postStop(): void {
              events.push('postStop');
            }
          })(),
        'a',
        { mailbox: { capacity: 2, overflow } },
      );
      ref.tell('wait');
      await env.settle();
      for (const message of ['1', '2']) ref.tell(message);
      other.stop();
      await env.settle();
      for (const message of ['3', '4', '5']) ref.tell(message);
      busy.resolve();
      await env.settle();
      assertEquals(events.includes('terminated'), true, events.join());
      ref.tell('6');
      ref.stop();
      await env.settle();
      assertEquals(events.at(-1), 'postStop');
      assertEquals(events.includes('6'), false, 'the stop came before the message');
    });
  }

  test('R137: without a bound nothing is dropped, and a long mailbox is warned about once', () => {
    const { env, system } = fixture();
    let handled = 0;
    const ref = system.spawn(acting<number>(() => handled++), 'a');
    const count = limits.mailboxWarning * 2;
    for (let i = 0; i < count; i += 1) ref.tell(i);
    assertEquals(env.logsAt('warn').length, 1);
    env.runTurns();
    assertEquals([handled, system.deadLetters.count], [count, 0]);
    for (let i = 0; i < count; i += 1) ref.tell(i);
    assertEquals(env.logsAt('warn').length, 2, 'warns again after it was emptied');
  });
});

describe('receipts', () => {
  test('come back when the handler has settled, with whether it failed', async () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const end = deferred();
    const ref = spawnManaged<string>(
      system,
      'a',
      acting((message) => {
        if (message === 'throw') throw new Error('x');
        return message === 'async' ? end.promise : undefined;
      }),
      { hooks: receipts(events) },
    );
    ref.deliver('sync', undefined, 1);
    ref.deliver('throw', undefined, 2);
    ref.deliver('async', undefined, 3);
    ref.tell('plain');
    await env.settle();
    assertEquals(events, ['settled 1', 'settled 2 failed']);
    end.reject(new Error('late'));
    await env.settle();
    assertEquals(events.at(-1), 'settled 3 failed');
    assertEquals(events.length, 3);
  });

  test('a stashed message settles when it is handled at last', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    let open = false;
    const ref = spawnManaged<string>(
      system,
      'a',
      acting((message, context) => {
        if (message === 'open') {
          open = true;
          context.unstashAll();
        } else if (!open) {
          context.stash();
        }
      }),
      { hooks: receipts(events) },
    );
    ref.deliver('a', undefined, 1);
    ref.deliver('b', undefined, 2);
    env.runTurns();
    assertEquals(events, []);
    ref.deliver('open', undefined, 3);
    env.runTurns();
    assertEquals(events, ['settled 3', 'settled 1', 'settled 2']);
  });

  test('what is left at the end is given back in order, and is no dead letter', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const ref = spawnManaged<string>(system, 'a', acting((_message, context) => context.stash()), {
      hooks: receipts(events),
    });
    ref.deliver('a', undefined, 1);
    env.runTurns();
    ref.deliver('b', undefined, 2);
    ref.tell('plain');
    ref.stop();
    env.runTurns();
    ref.deliver('c', undefined, 3);
    assertEquals(events, ['returned a 1', 'returned b 2', 'returned c 3']);
    assertEquals(deadLettersOf(system), ['stopped plain']);
  });

  test('what does not fit is given back', () => {
    const { env, system } = fixture();
    const events: string[] = [];
    const options = { hooks: receipts(events), mailbox: { capacity: 1 }, stashCapacity: 0 };
    const ref = spawnManaged<string>(system, 'a', acting((_message, context) => context.stash()), options);
    ref.deliver('a', undefined, 1);
    ref.deliver('b', undefined, 2);
    env.runTurns();
    assertEquals(events, ['returned b 2', 'returned a 1']);
    assertEquals(system.deadLetters.count, 0);
  });

  test('a hook that throws is logged, and the actor goes on', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const hooks: CellHooks = {
      settled: () => {
        throw new Error('hook');
      },
    };
    const ref = spawnManaged<string>(system, 'a', acting((message) => seen.push(message)), { hooks });
    ref.deliver('a', undefined, 1);
    ref.deliver('b', undefined, 2);
    env.runTurns();
    assertEquals(seen, ['a', 'b']);
    assertEquals(env.logsAt('error').length, 2);
  });
});

describe('the gate', () => {
  test('closed: nothing is handled until it opens, and then everything in order', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const door = gate();
    const ref = spawnManaged<string>(system, 'a', acting((message) => seen.push(message)), { gate: door });
    ref.tell('1');
    env.runTurns();
    door.set(false);
    ref.tell('2');
    env.runTurns();
    ref.tell('3');
    env.runTurns();
    assertEquals(seen, ['1']);
    assertEquals(door.waiting(), 1, 'it waits once, however many messages come');
    door.set(true);
    env.runTurns();
    assertEquals(seen, ['1', '2', '3']);
    assertEquals(door.waiting(), 0);
  });

  test('is asked before each message: one that closes it is the last', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const door = gate();
    const ref = spawnManaged<string>(
      system,
      'a',
      acting((message) => {
        seen.push(message);
        door.set(false);
      }),
      { gate: door },
    );
    for (const message of ['1', '2', '3']) ref.tell(message);
    env.runTurns();
    assertEquals(seen, ['1']);
    door.set(true);
    env.runTurns();
    assertEquals(seen, ['1', '2']);
  });

  test('covers timers, receive timeouts and stashed messages', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    const door = gate();
    const ref = spawnManaged<string>(
      system,
      'a',
      acting((message, context) => {
        if (message === 'setup') {
          context.timers.startSingle('t', 'tick', 10);
          context.setReceiveTimeout(20, 'idle');
          context.stash();
          context.unstashAll();
          door.set(false);
        }
        seen.push(message);
      }),
      { gate: door },
    );
    ref.tell('setup');
    env.advance(1_000);
    assertEquals(seen, ['setup']);
    door.set(true);
    env.runTurns();
    assertEquals(seen.slice(0, 2), ['setup', 'setup'], 'the stashed one is handled first');
  });

  test('a stop passes a closed gate', () => {
    const { env, system } = fixture();
    const door = gate();
    const ref = spawnManaged<string>(system, 'a', acting(() => {}), { gate: door });
    env.runTurns();
    door.set(false);
    ref.tell('1');
    env.runTurns();
    ref.stop();
    env.runTurns();
    assertEquals([ref.isTerminated, door.waiting()], [true, 0]);
  });

  test('a gate that calls back at once does not lose the wake-up', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    let asked = 0;
    const door: Gate = {
      open: () => (asked += 1) > 3,
      onOpen: (run) => {
        run();
        return () => {};
      },
    };
    const ref = spawnManaged<string>(system, 'a', acting((message) => seen.push(message)), { gate: door });
    ref.tell('1');
    env.runTurns();
    assertEquals(seen, ['1']);
  });
});

describe('the stash', () => {
  test('puts messages in front of those that came later', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    let ready = false;
    const ref = system.spawn(
      acting<string>((message, context) => {
        if (message === 'ready') {
          ready = true;
          context.unstashAll();
        } else if (ready) seen.push(message);
        else context.stash();
      }),
      'a',
    );
    for (const message of ['1', '2', 'ready', '3']) ref.tell(message);
    env.runTurns();
    assertEquals(seen, ['1', '2', '3']);
  });

  test('FB-111: overflow gives the message up, is warned about once, and does not fail the actor', () => {
    const { env, system } = fixture();
    const kept: boolean[] = [];
    const ref = system.spawn(acting<string>((_message, context) => kept.push(context.stash())), 'a', {
      stashCapacity: 2,
    });
    for (const message of ['1', '2', '3', '4']) ref.tell(message);
    env.runTurns();
    assertEquals(kept, [true, true, false, false]);
    assertEquals(deadLettersOf(system), ['stash-overflow 3', 'stash-overflow 4']);
    assertEquals(env.logsAt('warn').length, 1);
  });

  test('FB-029: nothing stashed or queued is lost in a restart', () => {
    const { env, system } = fixture();
    const seen: string[] = [];
    let instances = 0;
    const ref = system.spawn(() => {
      instances += 1;
      const first = instances === 1;
      return acting<string>((message, context) => {
        if (message === 'fail' && first) throw new Error('x');
        if (first) context.stash();
        else seen.push(message);
      })();
    }, 'a');
    for (const message of ['1', '2', '3', '4', '5', 'fail', '6', '7', '8', '9', '10']) ref.tell(message);
    env.runTurns();
    assertEquals(seen, ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']);
  });

  test('FB-029: all of it is accounted for when the actor stops', () => {
    const { env, system } = fixture();
    const ref = system.spawn(acting<string>((_message, context) => context.stash()), 'a');
    for (let i = 0; i < 5; i += 1) ref.tell(`stashed ${i}`);
    env.runTurns();
    for (let i = 0; i < 5; i += 1) ref.tell(`queued ${i}`);
    ref.stop();
    env.runTurns();
    assertEquals(system.deadLetters.countOf('stopped'), 10);
    assertEquals(deadLettersOf(system)[0], 'stopped stashed 0');
    assertEquals(deadLettersOf(system)[9], 'stopped queued 4');
  });
});
