import { describe, test } from 'node:test';
import { assert, assertEquals, assertFalse, assertStringIncludes } from '@std/assert';
import { parseCommandLine, type Parsed } from '../../cli/arguments.ts';
import { commands } from '../../cli/commands.ts';
import { exitCodes, exitCodeTexts } from '../../cli/exit_codes.ts';
import { helpText } from '../../cli/help.ts';

function parsed(...args: string[]): Parsed {
  const result = parseCommandLine(args);
  assert(result.kind === 'run', JSON.stringify(result));
  return result;
}

function line(...args: string[]): string {
  const result = parseCommandLine(args);
  assert(result.kind === 'wrong', JSON.stringify(result));
  assertFalse(['\n', '\r', '\u001b'].some((char) => result.line.includes(char)), result.line);
  return result.line;
}

describe('arguments', () => {
  test('a command with its flags, in both spellings and any order', () => {
    const { command, flags } = parsed('status', '--wait', '30s', '--members=3+', '--json', '--url', 'node:2551');
    assertEquals(command.name, 'status');
    assertEquals(flags.get('wait'), 30_000);
    assertEquals(flags.get('members'), { count: 3, orMore: true });
    assertEquals(flags.get('json'), true);
    assertEquals(flags.get('url'), 'http://node:2551/');
    assertEquals(parsed('move', '--to', 'b:1', 'jobs').operands, ['jobs']);
    assertEquals(parsed('journal', 'check', './data', '--json').operands, ['./data']);
    assertEquals(parsed('move', '--', '--odd-name').operands, ['--odd-name']);
  });

  test('a value may look like a flag when it is meant', () => {
    assertEquals(parsed('leave', '--token=--x').flags.get('token'), '--x');
    assertStringIncludes(line('leave', '--token', '--json'), '--token: needs a value');
  });

  test('each wrong command line is one line that names the flag and the rule', () => {
    const wrong: readonly (readonly [string[], string])[] = [
      [['stauts'], 'stauts: no such command; the commands are status, members'],
      [['--json', 'status'], '--json: a command comes first'],
      [['status', '--membrs', '3'], '--membrs: status has no such flag'],
      [['members', '--wait', '3s'], '--wait: members has no such flag'],
      [['status', '-x'], '-x: status has no such flag'],
      [['status', '--wait'], '--wait: needs a value: --wait DURATION'],
      [['status', '--wait='], '--wait: needs a value'],
      [['status', '--wait', '30'], '--wait 30: must be a duration'],
      [['status', '--wait', '0s'], '--wait 0s: must be a duration'],
      [['status', '--members', 'three'], '--members three: must be a number of members'],
      [['status', '--members', '0'], '--members 0: must be a number of members'],
      [['status', '--singletons', 'a,,b'], '--singletons a,,b: must be names'],
      [['status', '--json=yes'], '--json: takes no value'],
      [['status', '--json', '--json'], '--json: must be given once only'],
      [['status', '--url', 'ftp://a'], '--url ftp://a: must be an http or https URL'],
      [['status', '--url', 'http://a/?x=1'], 'must not hold a query'],
      [['status', 'now'], 'now: status takes no such argument'],
      [['down'], 'down: needs ADDRESS'],
      [['down', ''], 'down: ADDRESS must not be empty'],
      [['move'], 'move: needs NAME'],
      [['events', '--replay', '-1'], '--replay: needs a value'],
      [['events', '--replay=-1'], '--replay -1: must be a whole number'],
      [['journal'], 'journal: no such command'],
      [['journal', 'check'], 'journal check: needs DIRECTORY'],
      [['sta\u001b[31mtus\n'], 'sta?[31mtus?: no such command'],
    ];
    for (const [args, part] of wrong) assertStringIncludes(line(...args), part, args.join(' '));
  });

  test('no secret is shown', () => {
    assertFalse(line('status', '--url', 'http://user:hunter2@host/').includes('hunter2'));
    assertFalse(line('leave', '--token', 'hunter2', '--token', 'hunter2').includes('hunter2'));
  });

  test('help: of all, and of one', () => {
    for (const args of [[], ['--help'], ['-h'], ['help'], ['--help', 'x']]) {
      const result = parseCommandLine(args);
      assertEquals([result.kind, result.kind === 'help' && result.command], ['help', undefined]);
    }
    for (const args of [['move', '--help'], ['move', 'a', '-h']]) {
      const result = parseCommandLine(args);
      assertEquals(result.kind === 'help' && result.command?.name, 'move');
    }
    const all = helpText(undefined);
    for (const command of commands) {
      assertStringIncludes(all, `singlet ${command.name}`);
      for (const { name } of command.flags) assertStringIncludes(helpText(command), `--${name}`);
    }
    for (const [code, text] of exitCodeTexts) assertStringIncludes(all, `${code}  ${text}`);
    assertEquals(exitCodeTexts.map(([code]) => code), Object.values(exitCodes));
  });
});
