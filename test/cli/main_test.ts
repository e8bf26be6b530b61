import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertStringIncludes } from '@std/assert';
import { openFileStores } from '../../adapters/shared/file_journal/mod.ts';
import { exitCodes } from '../../cli/exit_codes.ts';
import { createApp } from '../../src/http/app.ts';
import { fakeInspection, member, singleton } from '../http/fake_inspection.ts';
import { runCli } from './cli_scene.ts';

const token = { SINGLET_TOKEN: 'letmein' };

describe('status', () => {
  test('all is well', async () => {
    const run = await runCli(['status'], { app: createApp(fakeInspection().inspection) });
    assertEquals([run.code, run.err], [exitCodes.done, '']);
    assertStringIncludes(run.out, 'a:1, ready, leader a:1');
    assertStringIncludes(run.out, 'jobs       a:1   7      1 min 0 s  hosting');
    assertFalse(run.out.includes('\x1b'));
  });

  test('what is missing is told, and is the exit code', async () => {
    const app = createApp(
      fakeInspection({
        readiness: () => ({ ready: false, reasons: ['Waiting for pledges.'] }),
        members: () => ({
          self: 'a:1',
          leader: null,
          members: [
            member('a:1'),
            member('b:1', { reachable: false, appVersion: '2' }),
            member('c:1', { status: 'joining' }),
          ],
        }),
        singletons: () => [singleton('jobs', { host: null, problem: 'no member has started it' })],
      }).inspection,
    );
    const args = ['status', '--members', '3', '--singletons', 'jobs,mail', '--app-version', '1.2.3', '--json'];
    const run = await runCli(args, { app });
    assertEquals(run.code, exitCodes.notAsExpected);
    const { asExpected, unmet, members } = JSON.parse(run.out);
    assertEquals([asExpected, members.length], [false, 3]);
    assertEquals(unmet, [
      'Not ready: Waiting for pledges.',
      '2 of 3 members are up.',
      'Unreachable: b:1.',
      'Another app version than 1.2.3: b:1 (2).',
      'No member has started mail.',
      'jobs has no host: no member has started it.',
    ]);
  });

  test('exactly, or at least', async () => {
    const app = createApp(fakeInspection().inspection);
    for (const [rule, code] of [['2', 0], ['1', 1], ['1+', 0], ['3+', 1]] as const) {
      assertEquals((await runCli(['status', '--members', rule], { app })).code, code, rule);
    }
  });

  test('waits until all is well, and shows what it waits for once', async () => {
    let tries = 0;
    const app = createApp(
      fakeInspection({ readiness: () => ({ ready: tries > 3, reasons: ['Joining.'] }) }).inspection,
    );
    const run = await runCli(['status', '--wait', '30s'], { app, onPause: () => tries += 1 });
    assertEquals(run.code, exitCodes.done);
    assertEquals(run.err, 'waiting: Not ready: Joining.\n');
  });

  test('a wait that runs out', async () => {
    const app = createApp(fakeInspection().inspection);
    const run = await runCli(['status', '--wait', '3s', '--members', '5'], { app });
    assertEquals(run.code, exitCodes.notAsExpected);
    assertStringIncludes(run.out, '2 of 5 members are up.');
    assertEquals((await runCli(['status', '--wait', '3s'])).code, exitCodes.noAnswer);
  });
});

describe('looking', () => {
  const app = createApp(fakeInspection().inspection);
  test('members and singletons, as text and as JSON', async () => {
    assertStringIncludes((await runCli(['members'], { app })).out, 'a:1     up      1    -      bun');
    assertEquals(JSON.parse((await runCli(['members', '--json'], { app })).out).members.length, 2);
    assertStringIncludes((await runCli(['singletons', 'jobs'], { app })).out, 'acknowledged');
    assertEquals(JSON.parse((await runCli(['singletons', '--json'], { app })).out).singletons[0].name, 'jobs');
  });
  test('an unknown singleton', async () => {
    const run = await runCli(['singletons', 'a/b'], { app });
    assertEquals([run.code, run.out], [exitCodes.refused, '']);
    assertStringIncludes(run.err, 'This node knows no singleton named "a/b". GET /cluster/singletons lists');
  });
  test('colours on a terminal only, and not where they are unwanted', async () => {
    assert((await runCli(['members'], { app, terminal: true })).out.includes('\x1b[32mup'));
    assertFalse(
      (await runCli(['members'], { app, terminal: true, variables: { NO_COLOR: '1' } })).out.includes('\x1b'),
    );
  });
  test('what a node says cannot move the cursor', async () => {
    const names = () => [singleton('evil\u001b[2J\nname')];
    const run = await runCli(['singletons'], { app: createApp(fakeInspection({ singletons: names }).inspection) });
    assertStringIncludes(run.out, 'evil?[2J?name');
  });
  test('events, with a replay, until there is enough', async () => {
    const fake = fakeInspection();
    const app = createApp(fake.inspection);
    fake.emit({ kind: 'member-up', text: 'b:1 is up.' });
    fake.emit({ kind: 'member-down', text: 'b:1 is down.' });
    const run = await runCli(['events', '--replay', '9', '--json', '--for', '50ms'], { app });
    assertEquals(run.code, exitCodes.done);
    assertEquals(run.out.trim().split('\n').map((line) => JSON.parse(line).kind), ['member-up', 'member-down']);
  });
});

describe('operating', () => {
  test('leave, down and move say what they did', async () => {
    const fake = fakeInspection();
    const app = createApp(fake.inspection);
    const texts = [];
    for (const args of [['leave'], ['down', 'b:1'], ['move', 'jobs'], ['move', 'jobs', '--to', 'b:1', '--json']]) {
      const run = await runCli(args, { app, variables: token });
      assertEquals(run.code, exitCodes.done, run.err);
      texts.push(run.out.trim());
    }
    assertEquals(texts, [
      'a:1 is leaving.',
      'b:1 is down.',
      'jobs moves to b:1.',
      '{"singleton":"jobs","from":"a:1","to":"b:1"}',
    ]);
    assertEquals(fake.calls, ['leave', 'down b:1', 'move jobs ', 'move jobs b:1']);
  });

  test('R147, P21: rebalance, and a full shutdown that is prepared and called off', async () => {
    const fake = fakeInspection({ singleton: (name) => singleton(name, { host: 'b:1' }) });
    const app = createApp(fake.inspection);
    const texts = [];
    for (
      const args of [
        ['rebalance'],
        ['rebalance', '--wait', '1s'],
        ['rebalance', '--json'],
        ['prepare-shutdown'],
        ['cancel-shutdown'],
        ['cancel-shutdown', '--json'],
      ]
    ) {
      const run = await runCli(args, { app, variables: token });
      assertEquals(run.code, exitCodes.done, run.err);
      texts.push(run.out.trim());
    }
    assertEquals(texts, [
      'moving: jobs to b:1.',
      'moved: jobs to b:1.',
      '{"moves":[{"singleton":"jobs","to":"b:1"}]}',
      'prepared, nothing is handed over any more: a:1, b:1.',
      'singletons start and move again.',
      '{"cancelled":true}',
    ]);
    const late = createApp(fakeInspection().inspection);
    const run = await runCli(['rebalance', '--wait', '1s'], { app: late, variables: token });
    assertEquals([run.code, run.out], [exitCodes.notAsExpected, 'moving: jobs to b:1; the wait is over.\n']);
    const refusing = createApp(
      fakeInspection({ rebalance: () => Promise.resolve({ kind: 'refused', message: 'no', hint: 'Later.' }) })
        .inspection,
    );
    assertEquals((await runCli(['rebalance'], { app: refusing, variables: token })).code, exitCodes.refused);
  });

  test('wait for the end', async () => {
    let host = 'a:1';
    const app = createApp(fakeInspection({ singleton: () => singleton('jobs', { host }) }).inspection);
    const args = ['move', 'jobs', '--to', 'b:1', '--wait', '5s'];
    const moved = await runCli(args, { app, variables: token, onPause: () => host = 'b:1' });
    assertEquals([moved.code, moved.out], [exitCodes.done, 'jobs runs on b:1.\n']);
    host = 'a:1';
    const late = await runCli(args, { app, variables: token });
    assertEquals([late.code, late.out], [exitCodes.notAsExpected, 'jobs moves to b:1; the wait is over.\n']);
  });

  test('refusals', async () => {
    const app = createApp(fakeInspection().inspection);
    const off = createApp(fakeInspection({ token: undefined }).inspection);
    const wrong = { SINGLET_TOKEN: 'guess-me' };
    const cases = [
      [await runCli(['leave'], { app }), exitCodes.tokenRefused, 'This needs a bearer token.'],
      [await runCli(['leave'], { app, variables: wrong }), exitCodes.tokenRefused, 'The bearer token is wrong.'],
      [await runCli(['leave'], { app: off, variables: token }), exitCodes.tokenRefused, 'takes no operations'],
      [await runCli(['down', 'z:1'], { app, variables: token }), exitCodes.refused, 'There is no member "z:1".'],
      [await runCli(['down', 'z'], { app, variables: token }), exitCodes.refused, 'must be host:port'],
      [await runCli(['move', 'mail'], { app, variables: token }), exitCodes.refused, 'knows no singleton'],
      [await runCli(['move', 'jobs', '--to', 'c:1'], { app, variables: token }), exitCodes.refused, 'Start it there.'],
    ] as const;
    for (const [run, code, part] of cases) {
      assertEquals(run.code, code, run.err);
      assertStringIncludes(run.err, part);
      assertEquals(run.err.trim().split('\n').length, 1);
      assertFalse(run.err.includes('guess-me') || run.err.includes('letmein'));
    }
  });
});

describe('what can go wrong on the way', () => {
  test('nobody there, too late, somebody else', async () => {
    assertStringIncludes(
      (await runCli(['members'])).err,
      'http://127.0.0.1:2551/ cannot be reached: connection refused.',
    );
    const late = await runCli(['members', '--timeout', '20ms'], {
      fetch: (_url, init) =>
        new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason))),
    });
    assertEquals(late.code, exitCodes.noAnswer);
    assertStringIncludes(late.err, 'no answer within 20 ms');
    const html = await runCli(['members'], { fetch: () => Promise.resolve(new Response('<p>hello')) });
    assertStringIncludes(html.err, 'but not as a Singlet node');
    const other = await runCli(['members'], { fetch: () => Promise.resolve(new Response('{}', { status: 404 })) });
    assertEquals(other.code, exitCodes.noAnswer);
  });
  test('the address from the environment, and a wrong one', async () => {
    const app = createApp(fakeInspection().inspection);
    const run = await runCli(['members'], { app, variables: { SINGLET_URL: 'http://host/node' } });
    assertEquals(run.asked, ['GET /node/cluster/members']);
    const wrong = await runCli(['members'], { app, variables: { SINGLET_URL: 'file:///x' } });
    assertEquals([wrong.code, wrong.err], [exitCodes.wrongUsage, 'SINGLET_URL: must be an http or https URL\n']);
  });
  test('wrong usage as JSON too', async () => {
    const run = await runCli(['down', '--json']);
    assertEquals([run.code, run.out], [exitCodes.wrongUsage, '']);
    assertEquals(JSON.parse(run.err).error.code, 'wrong-usage');
  });
  test('a certificate file that is not there', async () => {
    assertStringIncludes((await runCli(['members', '--ca', 'x.pem'])).err, '--ca x.pem: cannot be read');
  });
});

describe('without a node', () => {
  test('sim: a run, and wrong choices', async () => {
    const small = ['--nodes', '2', '--seconds', '1', '--profile', 'calm'];
    const { code, out } = await runCli(['sim', '--seed', '1', ...small, '--json']);
    assertEquals(code, exitCodes.done);
    const [run, sum] = out.trim().split('\n').map((line) => JSON.parse(line));
    assertEquals([run.seed, sum.runs, sum.failed], ['1', 1, []]);
    const hashes = await runCli(['sim', '--seeds', '1..2', ...small, '--hashes']);
    assertEquals(hashes.out.split('\n')[0], `1 calm ${run.hash} ok`);
    assertEquals(hashes.out.trim().split('\n').length, 2);
    const text = await runCli(['sim', '--seed', '1', ...small]);
    assertStringIncludes(text.out, 'seeds 1..1 of singletons: 1 runs, 0 failed');
    assertStringIncludes(text.out, 'settled ');
    for (
      const args of [['--profile', 'x'], ['--program', 'x'], ['--seeds', '5..1'], ['--faults', 'a'], [
        '--seed',
        '1',
        '--seeds',
        '1..2',
      ]]
    ) {
      assertEquals((await runCli(['sim', ...args])).code, exitCodes.wrongUsage, args.join(' '));
    }
  });
  test('journal check says what a repair would give up, and gives it up only when asked to', async () => {
    const directory = await mkdtemp(`${tmpdir()}/singlet-cli-`);
    try {
      const stores = await openFileStores(directory);
      const writer = { epoch: 1, uid: 'u', clusterId: 'c' };
      await stores.journal.claim('a', writer);
      for (let seq = 0; seq < 4; seq += 1) {
        await stores.journal.append('a', [{ payload: `event ${seq + 1}` }], seq, writer);
      }
      await stores.close();
      const [name] = (await readdir(`${directory}/journal`)).filter((file) => file.endsWith('.seg'));
      const path = `${directory}/journal/${name}`;
      const bytes = await readFile(path);
      const position = bytes.indexOf('event 3');
      bytes[position] = 0;
      await writeFile(path, bytes);
      for (let time = 0; time < 2; time += 1) {
        const run = await runCli(['journal', 'check', directory]);
        assertEquals(run.code, exitCodes.notAsExpected);
        assertStringIncludes(run.out, 'journal: damaged');
        assertStringIncludes(run.out, 'with these readable events: a: 4-4');
        assertEquals((await readFile(path)).equals(bytes), true);
      }
      const repaired = await runCli(['journal', 'check', directory, '--repair']);
      assertEquals(repaired.code, exitCodes.done, repaired.err);
      assertStringIncludes(repaired.out, 'given up: ');
      assertStringIncludes(repaired.out, 'journal: good');
      const kept = (await readdir(`${directory}/journal`)).find((file) => file.endsWith('.dropped'));
      const dropped = await readFile(`${directory}/journal/${kept}`);
      assertEquals(bytes.subarray(-dropped.length).equals(dropped), true);
      const again = await openFileStores(directory);
      assertEquals(await again.journal.highestSeq('a'), 2);
      await again.close();
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
  test('journal check where there is none', async () => {
    const run = await runCli(['journal', 'check', './no-such-directory']);
    assertEquals(run.code, exitCodes.notAsExpected);
    assertStringIncludes(run.err, 'There are no file stores in ./no-such-directory.');
  });
});
