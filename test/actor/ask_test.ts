import { describe, test } from 'node:test';
import { assert, assertEquals, assertInstanceOf, assertRejects } from '@std/assert';
import {
  AskTimeoutError,
  OptionsError,
  SystemTerminatedError,
  TooManyAsksError,
  UndeliveredError,
} from '../../src/mod.ts';
import { limits } from '../../src/limits.ts';
import { acting, deferred, fixture } from './system_fixture.ts';

const echo = acting<unknown>((message, context) => context.sender.tell(message));
const silent = acting<unknown>(() => {});

/** The promise's outcome as text, once there is one. */
function outcome(promise: Promise<unknown>): { text: string } {
  const result = { text: 'pending' };
  promise.then((value) => result.text = `reply ${String(value)}`, (error: Error) => result.text = error.name);
  return result;
}

describe('ask', () => {
  test('resolves with the first reply', async () => {
    const { env, system } = fixture();
    const asked = system.spawn(echo, 'a').ask<string>('hello');
    await env.settle();
    assertEquals(await asked, 'hello');
    assertEquals(system.asks.inFlight, 0);
  });

  test('resolves with undefined and with errors as they are', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(echo, 'a');
    const asked = [ref.ask(undefined), ref.ask(new Error('as a value'))];
    await env.settle();
    assertEquals(await asked[0], undefined);
    assertInstanceOf(await asked[1], Error);
  });

  test('R138: gives up after 5 s by default, with an error that names path and time', async () => {
    const { env, system } = fixture();
    const asked = system.spawn(silent, 'quiet').ask('x');
    const result = outcome(asked);
    await env.elapse(4_999);
    assertEquals(result.text, 'pending');
    await env.elapse(1);
    const error = await assertRejects(() => asked, AskTimeoutError, '/user/quiet within 5000 ms');
    assertEquals([error.path, error.timeoutMs, system.asks.inFlight], ['/user/quiet', 5_000, 0]);
  });

  test('each ask keeps its own time', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(silent, 'a');
    const results = [300, 100, 200, 100].map((timeoutMs) => outcome(ref.ask('x', timeoutMs)));
    await env.elapse(60);
    results.push(outcome(ref.ask('x', 100)));
    const texts = () => results.map((result) => result.text === 'pending' ? '-' : 'T').join('');
    await env.elapse(40);
    assertEquals(texts(), '-T-T-');
    await env.elapse(60);
    assertEquals(texts(), '-T-TT');
    await env.elapse(40);
    assertEquals(texts(), '-TTTT');
    await env.elapse(100);
    assertEquals(texts(), 'TTTTT');
    assertEquals(env.timerCount, 0, 'nothing is left behind');
  });

  test('asking one by one sets one timer, and many time limits leave none behind', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(echo, 'a');
    for (let i = 0; i < 100; i += 1) {
      const asked = ref.ask('x');
      await env.settle();
      await asked;
    }
    assertEquals(env.timerCount, 1);
    for (let i = 0; i < 100; i += 1) {
      const asked = ref.ask('x', 10_000 + i);
      await env.settle();
      await asked;
    }
    assert(env.timerCount <= 16, `${env.timerCount} timers`);
    await env.elapse(20_000);
    assertEquals(env.timerCount, 0);
  });

  test('a late or second reply is a dead letter', async () => {
    const { env, system } = fixture();
    const end = deferred();
    const late = system.spawn(
      acting<string>(async (_message, context) => {
        await end.promise;
        context.sender.tell('late');
      }),
      'late',
    );
    const twice = system.spawn(
      acting<string>((_message, context) => {
        context.sender.tell('first');
        context.sender.tell('second');
      }),
      'twice',
    );
    const results = [outcome(late.ask('x', 100)), outcome(twice.ask('x'))];
    await env.elapse(100);
    end.resolve();
    await env.settle();
    assertEquals(results.map((result) => result.text), ['AskTimeoutError', 'reply first']);
    const letters = system.deadLetters.recent.map((letter) => `${letter.reason} ${String(letter.message)}`).sort();
    assertEquals(letters, ['terminated late', 'terminated second']);
  });

  test('fails at once when the actor is dead, or stops with the question unread', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(silent, 'a');
    const queued = outcome(ref.ask('queued'));
    ref.stop();
    await env.settle();
    assertEquals(queued.text, 'UndeliveredError');
    const error = await assertRejects(() => ref.ask('x'), UndeliveredError, 'terminated');
    assertEquals([error.path, error.reason], ['/user/a', 'terminated']);
  });

  test('fails at once when the mailbox is full', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(silent, 'a', { mailbox: { capacity: 1 } });
    ref.tell('x');
    await assertRejects(() => ref.ask('y'), UndeliveredError, 'mailbox-overflow');
    await env.settle();
  });

  test('the one who answers sees a ref under /temp that is found while it waits', async () => {
    const { env, system } = fixture();
    const paths: string[] = [];
    const ref = system.spawn(acting<string>((_message, context) => paths.push(context.sender.path)), 'a');
    const asked = ref.ask('x');
    await env.settle();
    const path = paths[0] ?? '';
    assert(/^\/temp\/[0-9a-z]+-1$/.test(path), path);
    const [prefix] = path.split('-');
    for (const other of ['01', '+1', '1.', '2', '11', 'A', '', '1 ', '1e0', '-1', '0', '1zzzzzzzzzzzz']) {
      assertEquals(system.resolve(`${prefix}-${other}`), undefined, other);
    }
    for (const other of [`${prefix}x-1`, `${prefix}1`, prefix!, prefix!.slice(0, -1) + '-1', `${prefix}--1`]) {
      assertEquals(system.resolve(other), undefined, other);
    }
    system.resolve(path)?.tell('by path');
    assertEquals(await asked, 'by path');
    assertEquals(system.resolve(path), undefined);
  });

  for (const timeoutMs of [0, -1, NaN, Infinity, 2 ** 31, '5']) {
    test(`a time limit of ${timeoutMs} is refused`, async () => {
      const { system } = fixture();
      const ref = system.spawn(silent, 'a');
      await assertRejects(() => ref.ask('x', timeoutMs as number), OptionsError, 'timeoutMs');
    });
  }

  test('the number of questions in flight is bounded, and refusals are counted', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(silent, 'a');
    const asked: Promise<unknown>[] = [];
    for (let i = 0; i < limits.asks; i += 1) asked.push(ref.ask(i).catch(() => 'failed'));
    await assertRejects(() => ref.ask('one more'), TooManyAsksError, String(limits.asks));
    assertEquals([system.asks.inFlight, system.asks.refused], [limits.asks, 1]);
    env.advance(5_000);
    await env.settle();
    assertEquals(system.asks.inFlight, 0);
    assertEquals(await asked[0], 'failed');
  });

  test('open questions fail when the system ends, and new ones are refused', async () => {
    const { env, system } = fixture();
    const ref = system.spawn(silent, 'a');
    const open = outcome(ref.ask('x', 60_000));
    const terminated = system.terminate();
    await env.elapse(1_000);
    await terminated;
    assertEquals(open.text, 'SystemTerminatedError');
    await assertRejects(() => ref.ask('x'), SystemTerminatedError);
    assertEquals(env.timerCount, 0);
  });
});
