import { describe, test } from 'node:test';
import { assertEquals, assertInstanceOf } from '@std/assert';
import { DeadLetter, type DeadLetterFields } from '../../src/mod.ts';
import { limits } from '../../src/limits.ts';
import { acting, fixture } from './system_fixture.ts';

const letter = (message: unknown, reason = 'no-host'): DeadLetterFields => ({
  message,
  sender: undefined,
  recipient: 'singleton jobs',
  reason,
});

describe('dead letters', () => {
  test('are counted in all and by reason, and published to both kinds of listeners', () => {
    const { system } = fixture();
    const seen: unknown[] = [];
    const cancel = system.deadLetters.subscribe((one) => seen.push(one.message));
    system.eventStream.subscribe(DeadLetter, (one) => seen.push(one.recipient));
    system.deadLetters.publish(letter(1));
    system.deadLetters.publish(letter(2, 'too-large'));
    cancel();
    system.deadLetters.publish(letter(3));
    assertEquals(seen, [1, 'singleton jobs', 2, 'singleton jobs', 'singleton jobs']);
    assertEquals([system.deadLetters.count, system.deadLetters.countOf('no-host')], [3, 2]);
    assertEquals([...system.deadLetters.countByReason], [['no-host', 2], ['too-large', 1]]);
    assertEquals(system.deadLetters.countOf('stopped'), 0);
  });

  test('the latest are kept, up to a bound', () => {
    const { system } = fixture();
    for (let i = 0; i < limits.deadLettersKept + 5; i += 1) system.deadLetters.publish(letter(i));
    const { recent } = system.deadLetters;
    assertEquals([recent.length, recent[0]?.message], [limits.deadLettersKept, 5]);
    assertInstanceOf(recent[0], DeadLetter);
  });

  test('large ones push older ones out, one beyond the bound is not kept, and both are counted', () => {
    const { system } = fixture();
    const half = limits.deadLettersKeptBytes / 2 - 1_000;
    const seen: unknown[] = [];
    system.deadLetters.subscribe(() => seen.push(1));
    system.deadLetters.publish(letter({ n: 1, body: new Uint8Array(half) }));
    system.deadLetters.publish(letter({ n: 2, body: 'x'.repeat(half / 2) }));
    const kept = () => system.deadLetters.recent.map(({ message }) => (message as { n: number }).n);
    assertEquals([kept(), system.deadLetters.forgotten], [[1, 2], 0]);
    system.deadLetters.publish(letter({ n: 3, body: [new Map([['a', new ArrayBuffer(half)]])] }));
    assertEquals([kept(), system.deadLetters.forgotten], [[2, 3], 1]);
    system.deadLetters.publish(letter({ n: 4, body: new Uint8Array(limits.deadLettersKeptBytes) }));
    system.deadLetters.publish(letter({ n: 5 }));
    assertEquals([kept(), system.deadLetters.forgotten], [[2, 3, 5], 2]);
    assertEquals([system.deadLetters.count, seen.length], [5, 5]);
  });

  test('R55: carry message, sender, recipient and reason', () => {
    const { env, system } = fixture();
    const sender = system.spawn(acting(() => {}), 'sender');
    const ref = system.spawn(acting(() => {}), 'a');
    ref.stop();
    env.runTurns();
    ref.tell('x', sender);
    const [only] = system.deadLetters.recent;
    assertEquals([only?.message, only?.recipient, only?.reason, only?.sender === sender], [
      'x',
      '/user/a',
      'terminated',
      true,
    ]);
  });

  test('a listener that causes another dead letter does not start an endless chain', () => {
    const { env, system } = fixture();
    const dead = system.spawn(acting(() => {}), 'a');
    dead.stop();
    env.runTurns();
    let calls = 0;
    system.deadLetters.subscribe(() => {
      calls += 1;
      dead.tell('again');
    });
    dead.tell('first');
    assertEquals([calls, system.deadLetters.count], [1, 2]);
    dead.tell('second');
    assertEquals([calls, system.deadLetters.count], [2, 4]);
  });

  test('a reply to nobody is one', () => {
    const { env, system } = fixture();
    system.spawn(acting((_message, context) => context.sender.tell('reply')), 'a').tell('x');
    env.runTurns();
    assertEquals(system.deadLetters.recent.map((one) => [one.recipient, one.message]), [['/deadLetters', 'reply']]);
  });
});
