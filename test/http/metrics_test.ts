import { test } from 'node:test';
import { assert, assertEquals } from '@std/assert';
import type { MetricSample } from '../../src/http/inspection.ts';
import { listSamples } from '../../src/http/metrics.ts';
import { fakeInspection, member, singleton } from './fake_inspection.ts';

const feed = { readers: 2, cutOff: 1, refused: 0 };

function find(samples: readonly MetricSample[], name: string, labels: Record<string, string> = {}): number | undefined {
  return samples.find((sample) =>
    sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels?.[key] === value)
  )?.value;
}

test('metrics follow the reports', () => {
  const { inspection } = fakeInspection({
    members: () => ({
      self: 'a:1',
      leader: 'b:1',
      members: [
        member('a:1'),
        member('b:1', { status: 'down', reachable: false }),
        member('c:1', { status: 'joining' }),
      ],
    }),
  });
  const samples = [...listSamples(inspection, feed)];
  assertEquals(find(samples, 'singlet_node_info', { runtime: 'bun', address: 'a:1' }), 1);
  assertEquals(find(samples, 'singlet_members', { status: 'up' }), 1);
  assertEquals(find(samples, 'singlet_members', { status: 'leaving' }), 0);
  assertEquals(find(samples, 'singlet_members_unreachable'), 1);
  assertEquals(find(samples, 'singlet_leader'), 0);
  assertEquals(find(samples, 'singlet_ready'), 1);
  assertEquals(find(samples, 'singlet_http_event_readers'), 2);
  assertEquals(find(samples, 'singlet_dead_letters_total'), 4);
});

test('R139: the accounting of each singleton is there', () => {
  const samples = [...listSamples(fakeInspection().inspection, feed)];
  const labels = { singleton: 'jobs' };
  assertEquals(find(samples, 'singlet_singleton_active', labels), 1);
  assertEquals(find(samples, 'singlet_singleton_epoch', labels), 7);
  assertEquals(find(samples, 'singlet_singleton_buffered', labels), 3);
  assertEquals(find(samples, 'singlet_singleton_total', { ...labels, what: 'told' }), 10);
  assertEquals(find(samples, 'singlet_singleton_last_hand_over_seconds', labels), 0.042);
});

test('what is not known is left out', () => {
  const unknown = singleton('jobs', { host: null, epoch: null, lastHandOver: null, active: false });
  const samples = [...listSamples(fakeInspection({ singleton: () => unknown }).inspection, feed)];
  assertEquals(find(samples, 'singlet_singleton_active'), 0);
  assert(!samples.some((sample) => /epoch|hand_over/.test(sample.name)));
});
