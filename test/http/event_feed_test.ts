import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { createApp } from '../../src/http/app.ts';
import { limits } from '../../src/limits.ts';
import { type Fake, fakeInspection, readUntil } from './fake_inspection.ts';

function setUp() {
  const fake = fakeInspection();
  const app = createApp(fake.inspection);
  return {
    ...fake,
    read: async (headers: Record<string, string> = {}, path = '/cluster/events', signal?: AbortSignal) =>
      await app.request(path, { headers, ...(signal === undefined ? {} : { signal }) }),
    metric: async (name: string) => {
      const text = await (await app.request('/metrics')).text();
      return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]);
    },
  };
}

function emitMany(fake: Fake, count: number, text = 'x'): void {
  for (let i = 0; i < count; i++) fake.emit({ kind: 'warning', text: `${text}${i}` });
}

const ids = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].map((match) => match[1]);

describe('event stream', () => {
  test('sends what happens, with an id each', async () => {
    const fake = setUp();
    const response = await fake.read();
    assertEquals(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    fake.emit({ kind: 'singleton-hosted', at: 5, text: 'a:1 hosts jobs', singleton: 'jobs', epoch: 8 });
    const text = await readUntil(response, (so) => so.includes('jobs'));
    assertStringIncludes(text, 'retry: 1000\n\n');
    assertStringIncludes(
      text,
      'id: uid-a-1\ndata: {"kind":"singleton-hosted","at":5,"text":"a:1 hosts jobs","singleton":"jobs","epoch":8}\n\n',
    );
    await response.body?.cancel();
  });
  test('a text with line breaks stays one event', async () => {
    const fake = setUp();
    const response = await fake.read();
    fake.emit({ text: 'a\n\nid: forged\ndata: b' });
    assertEquals(ids(await readUntil(response, (so) => so.includes('forged'))), ['uid-a-1']);
    await response.body?.cancel();
  });
  test('resumes after Last-Event-ID without a gap or a repetition', async () => {
    const fake = setUp();
    emitMany(fake, 5);
    const response = await fake.read({ 'last-event-id': 'uid-a-3' });
    fake.emit({ text: 'new' });
    const text = await readUntil(response, (so) => so.includes('new'));
    assertEquals(ids(text), ['uid-a-4', 'uid-a-5', 'uid-a-6']);
    assert(!text.includes('reset'));
    await response.body?.cancel();
  });
  test('tells a reader that missed events, or comes from an earlier start of the node', async () => {
    const fake = setUp();
    emitMany(fake, limits.httpEventsKept + 10);
    for (const id of ['uid-a-3', 'uid-b-1005']) {
      const response = await fake.read({ 'last-event-id': id });
      const text = await readUntil(response, (so) => so.includes(`uid-a-${limits.httpEventsKept + 10}\n`));
      assertStringIncludes(text, '"kind":"reset"');
      assertEquals(ids(text).length, limits.httpEventsKept);
      await response.body?.cancel();
    }
  });
  test('replays past events to a new reader that asks for them', async () => {
    const fake = setUp();
    emitMany(fake, 5);
    const response = await fake.read({}, '/cluster/events?replay=2');
    assertEquals(ids(await readUntil(response, (so) => so.includes('uid-a-5'))), ['uid-a-4', 'uid-a-5']);
    await response.body?.cancel();
  });
  test('a replay that is no number is refused', async () => {
    const fake = setUp();
    for (const replay of ['abc', '-1', '1.5', '', '1000000']) {
      const response = await fake.read({}, `/cluster/events?replay=${replay}`);
      assertEquals(response.status, 400, replay);
      const { error } = await response.json() as { error: Record<string, string> };
      assertEquals([error['code'], Object.keys(error)], ['bad-request', ['code', 'message', 'hint']]);
      assertStringIncludes(error['message']!, 'replay must be a whole number');
    }
  });
  test('a heartbeat while nothing happens, and no timer without readers', async () => {
    const fake = setUp();
    assertEquals(fake.timers.armed, 0);
    const response = await fake.read();
    for (let i = 0; i < 3; i++) fake.timers.advance(limits.httpEventHeartbeatMs);
    assertStringIncludes(await readUntil(response, (so) => so.split(': still here').length > 3), ': still here\n\n');
    await response.body?.cancel();
    assertEquals(fake.timers.armed, 0);
  });
  test('readers are bounded', async () => {
    const fake = setUp();
    const readers: Response[] = [];
    for (let i = 0; i < limits.httpEventClients; i++) readers.push(await fake.read());
    const refused = await fake.read();
    assertEquals([refused.status, (await refused.json()).error.code], [503, 'too-many-readers']);
    assertEquals(await fake.metric('singlet_http_event_readers'), limits.httpEventClients);
    assertEquals(await fake.metric('singlet_http_event_readers_refused_total'), 1);
    for (const reader of readers) await reader.body?.cancel();
    assertEquals(await fake.metric('singlet_http_event_readers'), 0);
    const again = await fake.read();
    assertEquals(again.status, 200);
    await again.body?.cancel();
  });
  test('a reader that does not read is cut off, and the others are not', async () => {
    const fake = setUp();
    const slow = await fake.read();
    emitMany(fake, 400, 'y'.repeat(1_000));
    assertEquals(await fake.metric('singlet_http_event_readers'), 0);
    assertEquals(await fake.metric('singlet_http_event_readers_cut_off_total'), 1);
    const text = await readUntil(slow, () => false);
    assert(text.length < limits.httpEventClientBytes * 1.1, `${text.length} bytes were kept`);
    const last = ids(text).at(-1) ?? '';
    const back = await fake.read({ 'last-event-id': last });
    const rest = await readUntil(back, (so) => so.includes('uid-a-400\n'));
    assertEquals(ids(text).length + ids(rest).length, 400);
    await back.body?.cancel();
  });
  test('a reader whose request is aborted is forgotten', async () => {
    const fake = setUp();
    const abort = new AbortController();
    await fake.read({}, '/cluster/events', abort.signal);
    assertEquals(await fake.metric('singlet_http_event_readers'), 1);
    abort.abort();
    assertEquals(await fake.metric('singlet_http_event_readers'), 0);
    fake.emit({ text: 'nobody hears this' });
  });
  test('ends when this node is removed, so that nothing keeps the listener open', async () => {
    const fake = setUp();
    const response = await fake.read();
    fake.emit({ kind: 'self-removed', text: 'left' });
    assertStringIncludes(await readUntil(response, () => false), 'self-removed');
    assertEquals(await fake.metric('singlet_http_event_readers'), 0);
  });
});
