import { test } from 'node:test';
import { assertEquals, assertFalse, assertStringIncludes, assertThrows } from '@std/assert';
import { OptionsError } from '../../src/actor/options.ts';
import { type CallerGrant, resolveGrants } from '../../src/cluster/caller_grants.ts';
import { ClusterOptions } from '../../src/cluster/cluster_options.ts';
import { resolveClusterOptions } from '../../src/cluster/resolved_cluster_options.ts';

const token = 'sixteen-chars-or-more';
const grant: CallerGrant = { name: 'web', token, singletons: ['chat'] };

function refusal(...grants: unknown[]): OptionsError {
  return assertThrows(() => resolveGrants(grants as CallerGrant[], ['the-secret-of-the-cluster']), OptionsError);
}

test('defaults: both rights, a thousand messages per second', () => {
  assertEquals(resolveGrants([grant], []), [{
    name: 'web',
    tokens: [token],
    singletons: ['chat'],
    tell: true,
    ask: true,
    messagesPerSecond: 1_000,
    maxCallers: 1_000,
  }]);
  assertEquals(resolveGrants([{ ...grant, singletons: '*', allow: ['ask'] }], [])[0]!.singletons, undefined);
  assertEquals(resolveGrants(undefined, []), []);
});

test('every bad grant is one error that names entry, field and rule, and never shows a token', () => {
  const cases: [unknown, string][] = [
    [{ ...grant, name: '' }, 'name'],
    [{ ...grant, name: undefined }, 'name'],
    [{ ...grant, token: 'short' }, 'token'],
    [{ ...grant, token: 'with spaces in it, long' }, 'token'],
    [{ ...grant, token: [] }, 'token'],
    [{ ...grant, token: Array.from({ length: 9 }, (_, at) => `${token}-${at}`) }, 'token'],
    [{ ...grant, token: 'the-secret-of-the-cluster' }, 'token'],
    [{ ...grant, singletons: undefined }, 'singletons'],
    [{ ...grant, singletons: [] }, 'singletons'],
    [{ ...grant, singletons: 'chat' }, 'singletons'],
    [{ ...grant, allow: [] }, 'allow'],
    [{ ...grant, allow: ['join'] }, 'allow'],
    [{ ...grant, messagesPerSecond: 0 }, 'messagesPerSecond'],
    [{ ...grant, maxCallers: 1.5 }, 'maxCallers'],
    [{ ...grant, tokn: 'a-secret-in-the-wrong-field' }, 'tokn'],
    ['a-secret-in-the-place-of-all', 'grant'],
  ];
  for (const [bad, field] of cases) {
    const error = refusal(bad);
    assertEquals([error.family, error.field], ['ClusterOptions.callers[0]', field]);
    if (field === 'tokn') assertStringIncludes(error.message, 'tokn: is not an option; known are name, token');
    assertFalse(/sixteen|spaces in it|a-secret|the-secret/.test(error.message), error.message);
  }
  assertStringIncludes(refusal(grant, { ...grant, name: 'other' }).message, "differ from every other grant's");
  assertStringIncludes(refusal(grant, { ...grant, token: `${token}2` }).message, 'callers[1].name');
});

test('as an option of a node: a builder, no token in what is printed, none that is the secret', () => {
  const log = { error() {} };
  const context = { systemName: 'x', log };
  const secret = 'a-secret-of-some-length';
  const options = resolveClusterOptions(ClusterOptions.create().withSecret(secret).withCallers(grant), context);
  assertEquals(options.callers.reveal().map(({ name }) => name), ['web']);
  assertFalse(JSON.stringify(options).includes(token));
  assertThrows(() => resolveClusterOptions({ secret, callers: [{ ...grant, token: secret }] }, context), OptionsError);
  assertThrows(() => resolveClusterOptions({ callers: token as never }, context), OptionsError, '(hidden)');
});
