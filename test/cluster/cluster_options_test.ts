import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import { assert, assertEquals, assertFalse, assertMatch, assertStringIncludes, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { normalSeed } from '../../src/cluster/cluster_option_rules.ts';
import { ClusterOptions, type ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { KeepOldest, StaticQuorum } from '../../src/cluster/downing/mod.ts';
import { fingerprintDifferences } from '../../src/cluster/fingerprint.ts';
import {
  fingerprint,
  resolveClusterOptions,
  type ResolvedClusterOptions,
} from '../../src/cluster/resolved_cluster_options.ts';

const secret = 'correct horse battery';
const pem = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----';

function resolve(options: ClusterOptions | ClusterSettings = {}): ResolvedClusterOptions {
  return resolveClusterOptions(options, { systemName: 'my-app', log: { error: () => {} } });
}

function refusal(settings: unknown): OptionsError {
  return assertThrows(() => resolve(settings as ClusterSettings), OptionsError);
}

class Kind {
  static readonly kind = 'kind';
}
const runtime = { listen() {}, dial() {}, probe() {} } as unknown as NonNullable<ClusterSettings['runtime']>;
const transport = (() => ({ start() {}, dial() {}, probe() {}, seed() {}, stop() {} })) as unknown as NonNullable<
  ClusterSettings['transport']
>;

const everything: Required<ClusterSettings> = {
  name: 'shop',
  host: '10.0.0.1',
  port: 4_000,
  bindHost: '0.0.0.0',
  advertisedPort: 5_000,
  seeds: ['10.0.0.1:4000', 'http://10.0.0.2:4000'],
  roles: ['web', 'db'],
  kinds: [Kind, { name: 'other', factory: () => new Kind() }],
  secret,
  insecure: true,
  frameIntegrity: true,
  rejoin: false,
  reads: 'token',
  tls: { cert: pem, key: pem, ca: pem },
  token: 'a-bearer-token-of-some-length',
  downing: new KeepOldest(),
  failureDetector: { heartbeatMs: 400, unreachableAfterMs: 1_800 },
  stableAfterMs: 2_000,
  gossipIntervalMs: 900,
  selfElection: 'never',
  joinTimeoutMs: 1_234,
  leaveTimeoutMs: 2_345,
  runtime,
  transport,
  minMembers: 3,
  appVersion: '1.2.3',
  handOverTimeoutMs: 12_000,
  stopBoundMs: 900,
  driftBound: 0.001,
  gateWindowMs: 1_400,
  removalMarginMs: 2_800,
  leaseVoters: ['10.0.0.1:4000'],
  leaseMaxTtlMs: 20_000,
  callers: [{ name: 'web', token: 'a-token-of-callers', singletons: ['chat'] }],
  http: false,
};

describe('ClusterOptions', () => {
  test('frame integrity needs a secret and is not for TLS', () => {
    assertStringIncludes(refusal({ frameIntegrity: true }).message, 'needs a secret');
    assertStringIncludes(refusal({ frameIntegrity: true, secret, tls: { cert: pem, key: pem } }).message, 'TLS');
    assertEquals(refusal({ frameIntegrity: 'hmac', secret }).field, 'frameIntegrity');
    assertEquals(resolve({ frameIntegrity: true, secret }).frameIntegrity, true);
  });

  test('the defaults', () => {
    const { downing, timing, callers, ...rest } = resolve();
    assertEquals(callers.reveal(), []);
    assertEquals(rest, {
      name: 'my-app',
      host: '127.0.0.1',
      port: 0,
      bindHost: '127.0.0.1',
      advertisedPort: undefined,
      seeds: [],
      roles: [],
      kinds: [],
      secret: undefined,
      insecure: false,
      frameIntegrity: false,
      rejoin: true,
      reads: 'open',
      tls: undefined,
      token: undefined,
      gossipIntervalMs: 1_000,
      selfElection: 'cold-start',
      joinTimeoutMs: 60_000,
      leaveTimeoutMs: 15_000,
      runtime: undefined,
      transport: undefined,
      minMembers: 1,
      appVersion: '',
      leaseVoters: [],
      leaseMaxTtlMs: 30_000,
      http: true,
    });
    assertEquals([downing.name, timing.heartbeatMs], ['keep-majority', 500]);
  });

  test('every field has a withField, and the builder gives what the plain object gives', () => {
    const builder = ClusterOptions.create() as unknown as Record<string, (value: unknown) => ClusterOptions>;
    for (const [field, value] of Object.entries(everything)) {
      const method = `with${field[0]?.toUpperCase()}${field.slice(1)}`;
      assertEquals(typeof builder[method], 'function', method);
      assertEquals(builder[method]?.(value), builder as unknown as ClusterOptions, 'chains');
    }
    const fromBuilder = resolve(builder as unknown as ClusterOptions);
    const fromObject = resolve(everything);
    const hidden = { secret: 0, tls: 0, token: 0, callers: 0 };
    assertEquals({ ...fromBuilder, ...hidden }, { ...fromObject, ...hidden });
    assertEquals(fromBuilder.callers.reveal(), fromObject.callers.reveal());
    assertEquals(fromBuilder.secret?.reveal(), secret);
    assertEquals(fromBuilder.tls?.reveal(), everything.tls);
    assertEquals(fromBuilder.token?.reveal(), everything.token);
    assertEquals(fromBuilder.timing.gateWindowMs, 1_400);
  });

  test('lists take values, lists or both; a second call replaces the first', () => {
    const options = ClusterOptions.create().withRoles('x').withRoles('a', ['b', 'c']).withSeeds(['h:1'], 'h:2');
    assertEquals([options.toSettings().roles, options.toSettings().seeds], [['a', 'b', 'c'], ['h:1', 'h:2']]);
  });

  test('is resolved into something frozen that later changes do not reach', () => {
    const roles = ['web'];
    const options = { roles, secret: { current: secret, also: [`${secret} 2`] } };
    const resolved = resolve(options);
    roles.push('late');
    options.secret.also.push('late');
    assertEquals(resolved.roles, ['web']);
    assertEquals(resolved.secret?.reveal(), { current: secret, also: [`${secret} 2`] });
    assert(Object.isFrozen(resolved) && Object.isFrozen(resolved.roles) && Object.isFrozen(resolved.timing));
  });

  test('hosts and seeds are lower case, seeds and roles without repetitions', () => {
    const resolved = resolve({ host: 'LocalHost', seeds: ['H:1', 'h:1', 'HTTP://H:1/'], roles: ['a', 'a'] });
    assertEquals([resolved.host, resolved.seeds, resolved.roles], ['localhost', ['h:1', 'http://h:1'], ['a']]);
  });
});

describe('bad options are refused, each with family, field, value and rule', () => {
  const bad: Partial<Record<keyof ClusterSettings, readonly unknown[]>> = {
    name: ['', ' a', 'a\nb', 7, 'x'.repeat(256)],
    host: ['', '0.0.0.0', '::', '*', 'a b', 'h:4000', 'http://h', 'h.', '[::1]', null, 1],
    port: [-1, 65_536, 1.5, NaN, Infinity, '4000', null],
    bindHost: ['', 'a b', 0],
    advertisedPort: [0, 70_000],
    seeds: [
      'h:1',
      ['h'],
      ['h:0'],
      ['h:70000'],
      ['0.0.0.0:1'],
      ['ftp://h:1'],
      ['http://u:p@h:1'],
      ['http://h:1?x'],
      [7],
      Array.from({ length: 65 }, (_, i) => `h:${i + 1}`),
    ],
    roles: ['web', [''], ['a\tb'], ['x'.repeat(65)], Array.from({ length: 33 }, (_, i) => `r${i}`)],
    kinds: [Kind, ['kind'], [{ name: 'x' }], [{ name: '', factory: () => 1 }]],
    insecure: ['yes', 1, null],
    rejoin: ['yes', 1, null],
    reads: ['closed', true, null],
    downing: ['keep-referee', 'majority', 7, {}, null],
    failureDetector: [500, null],
    stableAfterMs: [NaN, -1, 0, Infinity, 2 ** 31, '3000'],
    gossipIntervalMs: [NaN, -1, 0, Infinity, 2 ** 31],
    selfElection: ['later', -1, NaN, Infinity, 2 ** 31, null],
    joinTimeoutMs: [NaN, -1, 0, Infinity, 2 ** 31],
    leaveTimeoutMs: [NaN, -1, 0, Infinity, 2 ** 31],
    runtime: [{}, 'bun', { listen() {} }],
    transport: [{}, null, 'x'],
    minMembers: [0, -1, 1.5, NaN, 1_001],
    appVersion: [1, 'a\u0000', 'x'.repeat(65)],
    handOverTimeoutMs: [NaN, -1, Infinity, 2 ** 31, 5_000],
    stopBoundMs: [NaN, -1, 0, Infinity, 2 ** 31],
    driftBound: [NaN, -1, Infinity, 1],
    gateWindowMs: [NaN, -1, 0, Infinity, 2 ** 31],
    removalMarginMs: [NaN, -1, Infinity, 2 ** 31, 100],
    leaseVoters: ['h:1', ['h'], ['h:0'], [7], Array.from({ length: 32 }, (_, i) => `h:${i + 1}`)],
    leaseMaxTtlMs: [NaN, -1, 0, 99, Infinity, 2 ** 31],
    http: ['on', 1, null],
  };
  for (const [field, values] of Object.entries(bad)) {
    test(`FB-131: ${field}`, () => {
      for (const value of values) {
        const error = refusal({ [field]: value });
        const item = error.field.endsWith('[0]');
        assertEquals([error.family, error.field.replace(/\[0\]$/, '')], ['ClusterOptions', field], inspect(value));
        const bad = item ? (value as unknown[])[0] : value;
        assertEquals(error.value, /[@?]/.test(String(bad)) ? '(hidden)' : bad);
        assertStringIncludes(error.message, `ClusterOptions.${field}${item ? '[0]' : ''}: must`);
      }
    });
  }

  test('fields of the failure detector', () => {
    const error = refusal({ failureDetector: { heartbeatMs: NaN } });
    assertEquals([error.family, error.field], ['ClusterOptions.failureDetector', 'heartbeatMs']);
    assertEquals(refusal({ failureDetector: { phi: 8 } }).field, 'phi');
    assertStringIncludes(
      refusal({ failureDetector: { heartbeatMs: 1_500, unreachableAfterMs: 2_000 } }).message,
      '1500',
    );
  });

  test('a field that nobody knows, and options that are none', () => {
    assertEquals(refusal({ seed: ['h:1'] }).field, 'seed');
    for (const options of [null, 7, 'x', []]) assertEquals(refusal(options).field, 'options');
  });
});

test('the bad item of a list is named, with its place, and not shown where it may hold a password', () => {
  const cases: [object, string][] = [
    [
      { seeds: ['h:1', 'foo'] },
      'ClusterOptions.seeds[1]: must be host:port or http(s)://host[:port] without wildcard, ',
    ],
    [{ roles: [''] }, 'ClusterOptions.roles[0]: must be a string of 1 to 64 printable characters, got ""'],
    [{ kinds: [5] }, 'ClusterOptions.kinds[0]: must be a class, or { name, factory }, got 5'],
    [{ leaseVoters: ['h:1', 'h:0'] }, 'ClusterOptions.leaseVoters[1]: must be an address like host:port'],
  ];
  for (const [options, start] of cases) {
    const { message } = refusal(options);
    assertEquals(message.slice(0, start.length), start);
  }
  assertMatch(refusal({ seeds: ['foo'] }).message, /got "foo"$/);
  assertMatch(refusal({ seeds: Array.from({ length: 65 }, () => 'h:1') }).message, /got an array of 65$/);
  for (const seed of ['http://me:hunter2@h', 'h:1?key=hunter2']) {
    assertFalse(refusal({ seeds: [seed] }).message.includes('hunter2'));
  }
});

describe('S7: secrets', () => {
  const shown = 'do-not-show-me';

  test('too short, too long or of the wrong shape, with no value in the error', () => {
    const wrong: unknown[] = ['', shown, 'x'.repeat(1_025), 7, null, { current: shown }, {
      current: secret,
      also: [shown],
    }, {
      current: secret,
      also: [],
      next: secret,
    }];
    for (const value of wrong) {
      const error = refusal({ secret: value });
      assertEquals([error.field, error.value], ['secret', '(hidden)']);
      assertFalse(`${error.message} ${error.stack} ${inspect(error)}`.includes(shown));
    }
    for (const value of [shown, 'with a space in it, long enough', 'ümlaut-ümlaut-ümlaut']) {
      assertEquals([refusal({ token: value }).field, refusal({ token: value }).value], ['token', '(hidden)']);
    }
  });

  test('R120: half a certificate, or paths instead of texts', () => {
    for (const tls of [{ cert: pem }, { key: pem }, { ca: pem }, { cert: '/a.pem', key: '/b.pem' }, {}, 'pem']) {
      const error = refusal({ tls });
      assertEquals([error.field, error.value], ['tls', '(hidden)']);
    }
  });

  test('nothing that prints options shows them', () => {
    const settings = {
      secret: `${shown}-${shown}`,
      token: `${shown}-${shown}`,
      tls: { cert: pem, key: `${pem}${shown}` },
    };
    const builder = ClusterOptions.create().withSecret(settings.secret).withToken(settings.token).withTls(settings.tls);
    const resolved = resolve(settings);
    for (const value of [builder, resolved, resolved.secret, { resolved }]) {
      const prints = [String(value), JSON.stringify(value), inspect(value, { depth: 9, showHidden: true })];
      for (const text of prints) assertFalse(text.includes(shown), text);
    }
    assertFalse(fingerprint(resolved).includes(shown));
  });

  test('without a secret only this machine may reach the node, unless insecure is spelled out', () => {
    assertEquals(refusal({ host: '10.0.0.1' }).field, 'secret');
    assertStringIncludes(refusal({ bindHost: '0.0.0.0' }).message, '0.0.0.0');
    resolve({ host: '10.0.0.1', secret });
    resolve({ host: '10.0.0.1', insecure: true });
    resolve({ host: '10.0.0.1', transport });
    for (const host of ['127.0.0.1', '127.1.2.3', 'localhost', '::1']) resolve({ host });
  });
});

describe('seeds', () => {
  test('are normalised, or no seeds', () => {
    const seeds: [given: string, dialled: string | undefined][] = [
      ['Node-1.example:4000', 'node-1.example:4000'],
      ['[::1]:4000', '[::1]:4000'],
      ['https://Node.example', 'https://node.example'],
      ['http://node:4000/', 'http://node:4000'],
      ['http://node:4000/inner/', 'http://node:4000/inner'],
      ['node', undefined],
      ['node:0', undefined],
      ['::1:4000', undefined],
      ['http://', undefined],
      ['http://0.0.0.0:1', undefined],
      ['http://a:1#x', undefined],
    ];
    for (const [given, dialled] of seeds) assertEquals(normalSeed(given), dialled, given);
  });
});

describe('fingerprint', () => {
  test('is equal for settings that need not agree, and short', () => {
    const one = fingerprint(resolve());
    const own: ClusterSettings = {
      host: '127.0.0.2',
      roles: ['x'],
      seeds: ['h:1'],
      secret,
      joinTimeoutMs: 5,
      minMembers: 2,
    };
    assertEquals(fingerprint(resolve(own)), one);
    assert(fingerprint(resolve({ ...everything, downing: new StaticQuorum({ quorumSize: 3 }) })).length < 1_024);
  });

  test('differs in, and explains, what must agree', () => {
    const here = fingerprint(resolve());
    const cases: [settings: ClusterSettings, difference: string][] = [
      [{ downing: 'keep-oldest' }, 'downing: keep-majority here, keep-oldest there'],
      [{ stopBoundMs: 900 }, 'stopBoundMs: 1000 here, 900 there'],
      [{ gateWindowMs: 1_000 }, 'gateWindowMs: 1500 here, 1000 there'],
      [{ removalMarginMs: 2_700 }, 'removalMarginMs: 2601 here, 2700 there'],
      [{ stableAfterMs: 2_000 }, 'stableAfterMs: by size within default here, 2000 there'],
      [{ failureDetector: { heartbeatMs: 400 } }, 'heartbeatMs: 500 here, 400 there'],
    ];
    for (const [settings, difference] of cases) {
      const differences = fingerprintDifferences(here, fingerprint(resolve(settings)));
      assert(differences.includes(difference), `${differences}`);
    }
    assertEquals(fingerprintDifferences(here, here), []);
  });

  test('holds the parameters of the strategy', () => {
    const [three, four] = [3, 4].map((quorumSize) =>
      fingerprint(resolve({ downing: new StaticQuorum({ quorumSize }) }))
    );
    assertEquals(fingerprintDifferences(three ?? '', four ?? ''), ['downing.quorumSize: 3 here, 4 there']);
  });
});
