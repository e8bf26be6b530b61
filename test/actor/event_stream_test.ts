import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { ActorFailed, EventStream } from '../../src/actor/event_stream.ts';
import { ManualEnvironment } from '../../src/testkit/manual_environment.ts';

class Base {}
class Derived extends Base {}
class Other {}

describe('event stream', () => {
  test('hands events to those who want their class, subclasses included', () => {
    const stream = new EventStream(new ManualEnvironment().log);
    const seen: string[] = [];
    stream.subscribe(Base, (event) => seen.push(event.constructor.name));
    stream.publish(new Base());
    stream.publish(new Derived());
    stream.publish(new Other());
    assertEquals(seen, ['Base', 'Derived']);
  });

  test('takes arrow functions and plain functions as predicates', () => {
    const stream = new EventStream(new ManualEnvironment().log);
    const seen: unknown[] = [];
    stream.subscribe((event: unknown): event is number => typeof event === 'number', (event) => seen.push(event + 1));
    stream.subscribe(
      function (event: unknown) {
        return event === 'a';
      },
      (event) => seen.push(event),
    );
    for (const event of [1, 'a', 'b']) stream.publish(event);
    assertEquals(seen, [2, 'a']);
  });

  test('a cancelled listener hears nothing more; cancelling twice is harmless', () => {
    const stream = new EventStream(new ManualEnvironment().log);
    const seen: unknown[] = [];
    const cancel = stream.subscribe(() => true, (event) => seen.push(event));
    stream.publish(1);
    cancel();
    cancel();
    stream.publish(2);
    assertEquals(seen, [1]);
  });

  test('a listener that throws is logged and harms nobody', () => {
    const env = new ManualEnvironment();
    const stream = new EventStream(env.log);
    const seen: unknown[] = [];
    stream.subscribe(Base, () => {
      throw new Error('listener');
    });
    stream.subscribe(Base, () => seen.push('second'));
    stream.publish(new Base());
    assertEquals(seen, ['second']);
    assertEquals(env.logsAt('error').length, 1);
  });

  test('subscribing while an event is handed out counts from the next one', () => {
    const stream = new EventStream(new ManualEnvironment().log);
    const seen: string[] = [];
    const cancel = stream.subscribe(Base, () => {
      seen.push('first');
      cancel();
      stream.subscribe(Base, () => seen.push('late'));
    });
    stream.publish(new Base());
    stream.publish(new Base());
    assertEquals(seen, ['first', 'late']);
  });

  test('a failure tells who, on what, and what became of it', () => {
    const error = new Error('x');
    assertEquals({ ...new ActorFailed('/user/a', error, 'inc', 'restart') }, {
      path: '/user/a',
      error,
      messageKind: 'inc',
      directive: 'restart',
    });
  });
});
