import { describe, test } from 'node:test';
import { assertEquals } from '@std/assert';
import { describeCounts, readCounts, readSkipReasons } from '../../scripts/testing/counts.ts';

describe('counts of a Bun run', () => {
  test('reads pass, fail, skip and todo', () => {
    const output = '(pass) a\n\n 12 pass\n 2 skip\n 1 todo\n 3 fail\nRan 18 tests across 1 file. [31.00ms]\n';
    assertEquals(readCounts('bun', output, 1), { passed: 12, failed: 3, skipped: 3 });
  });
  test('an error outside a test is a failure', () => {
    assertEquals(readCounts('bun', ' 0 pass\n 1 fail\n 1 error\n', 1).failed, 2);
  });
});

describe('counts of a Deno run', () => {
  test('adds steps to tests', () => {
    const output = 'x ... ok (1ms)\n\nok | 2 passed (1 step) | 0 failed | 0 ignored (1 step) (9ms)\n';
    assertEquals(readCounts('deno', output, 0), { passed: 3, failed: 0, skipped: 1 });
  });
  test('reads a failed run, coloured', () => {
    const output = '\u001b[0m\u001b[31mFAILED\u001b[0m | 5 passed | 2 failed (1 step) (9ms)\n';
    assertEquals(readCounts('deno', output, 1), { passed: 5, failed: 3, skipped: 0 });
  });
});

describe('counts of a Node run', () => {
  test('reads both reporters', () => {
    const spec = 'ℹ tests 5\nℹ pass 2\nℹ fail 1\nℹ cancelled 1\nℹ skipped 1\nℹ todo 0\n';
    assertEquals(readCounts('node', spec, 1), { passed: 2, failed: 2, skipped: 1 });
    assertEquals(readCounts('node', spec.replaceAll('ℹ', '#'), 1), { passed: 2, failed: 2, skipped: 1 });
  });
  test('reads why tests were skipped', () => {
    const output =
      '  ﹣ page (0.08ms) # chromium is not installed\n﹣ other (1ms) # chromium is not installed\n✔ b (1ms)\n';
    assertEquals([...readSkipReasons(output)], [['chromium is not installed', 2]]);
  });
});

describe('runs that must not look green', () => {
  test('no test at all is a failure', () => {
    assertEquals(readCounts('bun', ' 0 pass\n 0 fail\n', 0), { passed: 0, failed: 1, skipped: 0 });
    assertEquals(readCounts('deno', 'ok | 0 passed | 0 failed (0ms)\n', 0).failed, 1);
    assertEquals(readCounts('node', 'ℹ pass 0\nℹ fail 0\n', 0).failed, 1);
  });
  test('no summary is a failure', () => {
    for (const runtime of ['bun', 'deno', 'node'] as const) {
      assertEquals(readCounts(runtime, 'Segmentation fault', 139), { passed: 0, failed: 1, skipped: 0 });
    }
  });
  test('an exit code without a failed test is a failure', () => {
    assertEquals(readCounts('node', 'ℹ pass 3\nℹ fail 0\n', 1), { passed: 3, failed: 1, skipped: 0 });
  });
});

test('the closing line has one form', () => {
  assertEquals(describeCounts({ passed: 1, failed: 0, skipped: 2 }), '1 passed, 0 failed, 2 skipped');
});
