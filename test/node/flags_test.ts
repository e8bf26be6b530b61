import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertStringIncludes } from '@std/assert';
import { helpText, type NodeFlags, parseFlags } from '../../node/flags.ts';

function flags(...args: string[]): NodeFlags {
  const result = parseFlags(args);
  assert(result.kind === 'run', JSON.stringify(result));
  return result.flags;
}

function line(...args: string[]): string {
  const result = parseFlags(args);
  assert(result.kind === 'wrong', JSON.stringify(result));
  assertFalse(result.line.includes('\n'));
  return result.line;
}

describe('flags of the ready-made node', () => {
  test('defaults', () => {
    assertEquals(flags(), {
      host: '127.0.0.1',
      port: 0,
      seeds: [],
      roles: [],
      name: 'singlet',
      secret: undefined,
      secretFile: undefined,
      token: undefined,
      tokenFile: undefined,
      postgresFile: undefined,
      form: false,
      logLevel: 'warn',
    });
  });

  test('all of them, in both spellings', () => {
    const all = flags(
      '--host',
      '10.0.0.1',
      '--port=7000',
      '--seeds',
      'a:1, [::1]:2,https://seed.example/x',
      '--roles=web,jobs',
      '--name',
      'shop',
      '--secret=a=b --c',
      '--token',
      't',
      '--form',
      '--log-level',
      'debug',
    );
    assertEquals(all.host, '10.0.0.1');
    assertEquals(all.port, 7000);
    assertEquals(all.seeds, ['a:1', '[::1]:2', 'https://seed.example/x']);
    assertEquals(all.roles, ['web', 'jobs']);
    assertEquals(all.secret, 'a=b --c');
    assertEquals([all.name, all.token, all.form, all.logLevel], ['shop', 't', true, 'debug']);
    assertEquals(flags('--secret-file', '/run/secret').secretFile, '/run/secret');
    assertEquals(flags('--host', '::1').host, '::1');
  });

  test('--help wins over missing things and names every flag', () => {
    assertEquals(parseFlags(['--port', '1', '--help']).kind, 'help');
    assertEquals(parseFlags(['-h']).kind, 'help');
    for (
      const name of [
        'host',
        'port',
        'seeds',
        'roles',
        'name',
        'secret',
        'secret-file',
        'token',
        'token-file',
        'form',
        'log-level',
      ]
    ) {
      assertStringIncludes(helpText, `--${name} `);
    }
  });

  test('each wrong flag or value is one line that names it and the rule', () => {
    assertEquals(line('--prot', '5'), '--prot: no such flag (try --help)');
    assertEquals(line('7000'), '7000: is not a flag (try --help)');
    assertEquals(line('-p', '5'), '-p: is not a flag (try --help)');
    assertEquals(line('--'), '--: is not a flag (try --help)');
    assertEquals(line('--port'), '--port: needs a value');
    assertEquals(line('--port='), '--port: needs a value');
    assertEquals(line('--secret', '--form'), '--secret: needs a value');
    assertEquals(line('--form=yes'), '--form: takes no value');
    assertEquals(line('--port', '1', '--port', '2'), '--port: must be given once only');
    for (const port of ['65536', '-1', 'http', '1.5', '0x10', '1e3', '99999999']) {
      assertEquals(line('--port', port), `--port ${port}: must be a whole number from 0 to 65535`);
    }
    for (const host of ['http://a', 'a:7000', 'a b', 'a/b', 'u@h']) {
      assertStringIncludes(line('--host', host), `--host ${host}: must`);
    }
    for (const seeds of ['a', 'a:0', 'a:70000', 'a:1,', 'a:1,,b:2', 'http://', ':5']) {
      assertStringIncludes(line('--seeds', seeds), '--seeds ');
    }
    assertStringIncludes(line('--roles', 'a,,b'), '--roles a,,b: must');
    assertStringIncludes(line('--log-level', 'loud'), '--log-level loud: must be one of debug');
    assertStringIncludes(line('--secret', 'a', '--secret-file', 'b'), '--secret-file: must not');
    assertStringIncludes(line('--token', 'a', '--token-file', 'b'), '--token-file: must not');
  });

  test('what was typed cannot break the line or flood it', () => {
    assertEquals(line('--port', '1\n2\u001b[31m'), '--port 1?2?[31m: must be a whole number from 0 to 65535');
    assert(line(`--${'x'.repeat(500)}`).length < 130);
  });

  test('where jobs are kept', () => {
    assertEquals(flags('--journal', '/var/jobs').store, { kind: 'journal', directory: '/var/jobs' });
    const url = 'postgresql://user:password@db.example:5432/jobs';
    assertEquals(flags('--postgres', url).store, { kind: 'postgres', url });
    assertEquals(
      line('--postgres', url, '--journal', '/var/jobs'),
      '--postgres: must not be given together with --journal',
    );
    for (
      const wrong of [
        'db.example',
        'mysql://user:password@x/y',
        'postgres://user:password@x:port/y',
        'postgres://user:%pw@x/y',
      ]
    ) {
      assertEquals(
        line('--postgres', wrong),
        '--postgres: must be a URL such as postgres://user:password@host:5432/database',
      );
    }
    assertEquals(line('--journal'), '--journal: needs a value');
    const byFile = flags('--postgres-file', '/run/postgres');
    assertEquals([byFile.postgresFile, byFile.store], ['/run/postgres', undefined]);
    for (const [other, value] of [['--postgres', url], ['--journal', '/var/jobs']] as const) {
      assertEquals(
        line('--postgres-file', '/run/postgres', other, value),
        `--postgres-file: must not be given together with ${other}`,
      );
    }
    for (const name of ['--journal DIR', '--postgres URL', '--postgres-file FILE', 'SINGLET_POSTGRES']) {
      assertStringIncludes(helpText, name);
    }
  });
});
