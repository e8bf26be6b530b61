import { describe, test } from 'node:test';
import { assert, assertEquals, assertStringIncludes } from '@std/assert';
import { createApp } from '../../src/http/app.ts';
import { fakeInspection, member, singleton } from './fake_inspection.ts';

describe('?format=', () => {
  const { inspection, emit } = fakeInspection({
    members: () => ({
      self: 'b:1',
      leader: 'a:1',
      members: [member('a:1'), member('b:1', { upNumber: 2, reachable: false, appVersion: 'evil\u001b[2J' })],
    }),
    singletons: () => [singleton('jobs', { host: null, problem: 'No member has started it.' })],
  });
  const app = createApp(inspection);
  const text = async (path: string) => (await app.request(path)).text();
  const json = async (path: string) => (await app.request(path)).json();

  test('text: members in columns, and nothing that a terminal obeys', async () => {
    const response = await app.request('/cluster/members?format=text');
    assertStringIncludes(response.headers.get('content-type') ?? '', 'text/plain');
    assertEquals(response.headers.get('cache-control'), 'no-store');
    const [head, first, second] = (await response.text()).split('\n');
    const at = (word: string) => head!.indexOf(word);
    assertEquals([first!.slice(0, 3), first!.slice(at('IS')).split(' ')[0]], ['a:1', 'leader']);
    assertEquals([second!.slice(at('REACHABLE')).split(' ')[0], second!.slice(at('IS')).split(' ')[0]], [
      'no',
      'asked',
    ]);
    assert(second!.endsWith('evil?[2J'), second);
  });

  test('text: the leader, and singletons with what keeps them from being hosted', async () => {
    assertEquals(await text('/cluster/leader?format=text'), 'a:1\n');
    const [, line] = (await text('/cluster/singletons?format=text')).split('\n');
    assert(/^jobs +- .*No member has started it\.$/.test(line!), line);
  });

  test('json: metrics with the same samples as in the text', async () => {
    const { metrics } = await json('/metrics?format=json');
    const names = new Set(metrics.map(({ name }: { name: string }) => name));
    const lines = (await text('/metrics')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    assertEquals(metrics.length, lines.length);
    for (const line of lines) assert(names.has(/^\w+/.exec(line)![0]), line);
    assertEquals(await text('/metrics?format=text'), await text('/metrics'));
  });

  test('json: events once, with the ids from which the stream goes on', async () => {
    assertEquals(await json('/cluster/events?format=json'), { events: [] });
    for (const at of [1, 2, 3]) emit({ kind: 'warning', at, text: `${at}` });
    const { events } = await json('/cluster/events?format=json&replay=2');
    assertEquals(events.map(({ at }: { at: number }) => at), [2, 3]);
    assertEquals((await json('/cluster/events?format=json')).events.length, 3);
    const stream = await app.request('/cluster/events', { headers: { 'last-event-id': events[0].id } });
    const { value } = await stream.body!.getReader().read();
    assertStringIncludes(new TextDecoder().decode(value), '"at":3');
    assert(!new TextDecoder().decode(value).includes('"at":2'));
  });

  test('a format that a path does not have is refused with those that it has', async () => {
    const cases = [
      ['/cluster/members', 'json or text'],
      ['/cluster/leader', 'json or text'],
      ['/cluster/singletons', 'json or text'],
      ['/cluster/singletons/jobs', 'json'],
      ['/cluster/events', 'stream or json'],
      ['/metrics', 'text or json'],
    ] as const;
    for (const [path, formats] of cases) {
      for (const format of ['xml', '', 'JSON', '__proto__']) {
        const response = await app.request(`${path}?format=${format}`);
        assertEquals(response.status, 400, path);
        const { error } = await response.json();
        assertEquals([error.code, error.message], ['bad-request', `format must be ${formats} here.`]);
        assert(error.hint.length > 0);
      }
    }
  });
});
