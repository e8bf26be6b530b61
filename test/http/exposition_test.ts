import { test } from 'node:test';
import { assertEquals } from '@std/assert';
import { exposition } from '../../src/http/exposition.ts';
import type { MetricSample } from '../../src/http/inspection.ts';

const sample = (more: Partial<MetricSample>): MetricSample => ({
  name: 'a',
  help: 'A.',
  type: 'gauge',
  value: 1,
  ...more,
});

test('samples of one name stand under one head', () => {
  const text = exposition([
    sample({ labels: { x: '1' } }),
    sample({ name: 'b', type: 'counter' }),
    sample({ labels: { x: '2' }, value: 2.5 }),
  ]);
  assertEquals(text, '# HELP a A.\n# TYPE a gauge\na{x="1"} 1\na{x="2"} 2.5\n# HELP b A.\n# TYPE b counter\nb 1\n');
});

test('texts are escaped', () => {
  const text = exposition([sample({ help: 'a\nb\\', labels: { x: 'q"\n\\', y: 'ü' } })]);
  assertEquals(text, '# HELP a a\\nb\\\\\n# TYPE a gauge\na{x="q\\"\\n\\\\",y="ü"} 1\n');
});

test('numbers that JSON lacks', () => {
  const values = [Infinity, -Infinity, NaN, 1e21].map((value) => exposition([sample({ value })]).split('\n')[2]);
  assertEquals(values, ['a +Inf', 'a -Inf', 'a NaN', 'a 1e+21']);
});

test('a name that would break the format is left out', () => {
  assertEquals(exposition([sample({ name: 'a b' }), sample({ labels: { 'x-y': '1' } }), sample({ name: '1a' })]), '');
});
