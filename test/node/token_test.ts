import { describe, test } from 'node:test';
import { assertEquals, assertNotEquals } from '@std/assert';
import { nodeLogger } from '../../node/node_log.ts';
import { tokenOf, tokenRecipe } from '../../node/token.ts';

describe('bearer token of a secret', () => {
  test('is what the recipe in the help gives', async () => {
    // printf 'singlet bearer token' | openssl dgst -sha256 -hmac 'correct horse battery staple'
    const expected = 'dc32a547e92dda5d97e23353e516ac0f2880d88fb776bb3905b77bdcb1e11501';
    assertEquals(await tokenOf('correct horse battery staple'), expected);
    assertEquals(tokenRecipe.includes("'singlet bearer token'"), true);
  });

  test('differs by secret', async () => {
    assertNotEquals(await tokenOf('correct horse battery staple'), await tokenOf('correct horse battery staplf'));
  });
});

describe('log of the ready-made node', () => {
  test('is one line per message, whatever is in it', () => {
    const lines: string[] = [];
    const log = nodeLogger('info', (line) => lines.push(line));
    log.debug('not shown');
    log.info('a\nb\u001b[2J', { error: new TypeError('x\ny'), big: 5n });
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    log.warn('cycle', cycle);
    assertEquals(lines.length, 2);
    assertEquals(lines[0]!.slice(25), 'INFO a | b?[2J {"error":"TypeError: x\\ny","big":"5"}');
    assertEquals(lines[1]!.slice(25), 'WARN cycle (fields that cannot be shown)');
  });
});
