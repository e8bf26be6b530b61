import { assertEquals } from '@std/assert';
import { describe, test } from 'node:test';
import { parseOptions } from '../../scripts/testing/options.ts';

const options = {
  seed: { type: 'string' },
  rounds: { type: 'string', default: '5' },
  verbose: { type: 'boolean' },
} as const;
const usage = 'usage: npm run soak -- [--seed …] [--rounds …] [--verbose]';
const read = (...args: string[]) => parseOptions('soak', options, args);

describe('options of scripts', () => {
  test('known ones, with their defaults', () => {
    const parsed = read('--seed', '7', '--verbose');
    assertEquals(parsed.kind === 'values' && { ...parsed.values }, { seed: '7', rounds: '5', verbose: true });
  });

  test('what is wrong is said in one line above the usage', () => {
    const wrong: readonly (readonly [string[], string])[] = [
      [['--sed', '7'], "Unknown option '--sed'"],
      [['7'], "Unexpected argument '7'"],
      [['--verbose=yes'], "Option '--verbose' does not take an argument"],
    ];
    for (const [args, line] of wrong) {
      const parsed = read(...args);
      assertEquals(parsed.kind, 'wrong');
      assertEquals(parsed.kind === 'wrong' && parsed.text.split('\n').length, 2, args.join(' '));
      assertEquals(parsed.kind === 'wrong' && parsed.text.startsWith(line.slice(0, 20)), true, args.join(' '));
      assertEquals(parsed.kind === 'wrong' && parsed.text.endsWith(usage), true);
    }
    assertEquals(read('--seed').kind, 'wrong');
  });

  test('help is no mistake', () => {
    for (const flag of ['--help', '-h']) assertEquals(read('--seed', '7', flag), { kind: 'help', text: usage });
  });
});
