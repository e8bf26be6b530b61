import { describe, test } from 'node:test';
import { assertEquals, assertRejects } from '@std/assert';
import { EventParser, followEvents, type FollowOptions, type StreamEvent } from '../../cli/event_stream.ts';
import { CliError, exitCodes } from '../../cli/exit_codes.ts';

const block = (id: string, text: string, kind = 'member-up') =>
  `id: ${id}\ndata: ${JSON.stringify({ kind, at: 1, text })}\n\n`;

describe('reading events', () => {
  test('takes them in any pieces, and leaves out heartbeats and what is no JSON', () => {
    const whole = `retry: 1000\n\n${block('u-1', 'ä b')}: still here\n\ndata: {nonsense\n\n${block('u-2', 'c')}`;
    for (const size of [1, 7, whole.length]) {
      const parser = new EventParser();
      const texts: string[] = [];
      for (let at = 0; at < whole.length; at += size) {
        for (const { id, event } of parser.push(whole.slice(at, at + size))) texts.push(`${id} ${event.text}`);
      }
      assertEquals(texts, ['u-1 ä b', 'u-2 c']);
    }
  });
});

function follow(answers: (string | Error)[], change: Partial<FollowOptions> = {}) {
  const seen: StreamEvent[] = [];
  const opened: string[] = [];
  const lost: string[] = [];
  const ended = new AbortController();
  const options: FollowOptions = {
    open: (path, headers) => {
      opened.push(`${path} ${headers['last-event-id'] ?? '-'}`);
      const answer = answers.shift();
      if (answer === undefined) ended.abort();
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(new Response(answer ?? ''));
    },
    replay: 5,
    signal: ended.signal,
    onEvent: (event) => seen.push(event),
    onLost: (why) => lost.push(why),
    pause: () => Promise.resolve(),
    ...change,
  };
  return { done: followEvents(options), seen, opened, lost };
}

describe('following events', () => {
  test('goes on where the last connection ended', async () => {
    const gone = new CliError(exitCodes.noAnswer, 'no-answer', 'gone');
    const run = follow([block('u-1', 'a') + block('u-2', 'b'), gone, block('u-3', 'c')]);
    await run.done;
    assertEquals(run.seen.map(({ text }) => text), ['a', 'b', 'c']);
    assertEquals(run.opened, [
      'cluster/events?replay=5 -',
      'cluster/events u-2',
      'cluster/events u-2',
      'cluster/events u-3',
    ]);
    assertEquals(run.lost, ['the connection ended', 'gone', 'the connection ended']);
  });
  test('ends when the node has left and does not come back', async () => {
    const gone = () => new CliError(exitCodes.noAnswer, 'no-answer', 'gone');
    const left = follow([block('u-1', 'left', 'self-removed'), gone(), gone(), gone(), 'never asked for']);
    await left.done;
    assertEquals([left.seen.length, left.opened.length], [1, 4]);
    const back = follow([
      block('u-1', 'left', 'self-removed'),
      gone(),
      block('v-1', 'back'),
      gone(),
      gone(),
      gone(),
      gone(),
    ]);
    await back.done;
    assertEquals([back.seen.map(({ text }) => text), back.opened.length], [['left', 'back'], 8]);
  });
  test('a first connection that fails is told', async () => {
    await assertRejects(
      () => follow([new CliError(exitCodes.tokenRefused, 'unauthorized', 'no')]).done,
      CliError,
      'no',
    );
  });
});
