import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { formatAddress, isLoopbackAddress, isWildcardHost, parseAddress } from '../../src/transport/address.ts';

test('addresses survive parsing and formatting', () => {
  for (const address of ['127.0.0.1:4001', 'node-1.example.org:1', '[::1]:65535', '[fe80::1]:0', 'localhost:80']) {
    const parsed = parseAddress(address);
    assertEquals(parsed === undefined ? undefined : formatAddress(parsed.host, parsed.port), address);
  }
});

test('what is no address is none', () => {
  const bad = [
    '',
    'host',
    'host:',
    ':1',
    'host:65536',
    'host:1x',
    'ho st:1',
    'a/b:1',
    '::1:80',
    '[host]:1',
    '[::1]',
    'h:-1',
  ];
  for (const address of bad) assertEquals(parseAddress(address), undefined, address);
  assertEquals(parseAddress(`${'a'.repeat(256)}:1`), undefined);
});

test('loopback is 127.0.0.0/8, ::1 and localhost', () => {
  const yes = ['127.0.0.1:1', '127.9.8.7:1', '[::1]:1', 'localhost:1', 'LOCALHOST:1'];
  const no = ['128.0.0.1:1', '10.0.0.1:1', 'localhost.example:1', '127.0.0.1.example:1', '0.0.0.0:1', '[::2]:1', 'x'];
  for (const address of yes) assertEquals(isLoopbackAddress(address), true, address);
  for (const address of no) assertEquals(isLoopbackAddress(address), false, address);
});

test('R109: wildcards are recognised in every spelling', () => {
  for (const host of ['', '0.0.0.0', '0', '::', '*', '0:0:0:0:0:0:0:0']) assertEquals(isWildcardHost(host), true, host);
  for (const host of ['127.0.0.1', '::1', '10.0.0.0', 'node0']) assertEquals(isWildcardHost(host), false, host);
});
