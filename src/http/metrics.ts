/** The samples of `/metrics` that follow from the reports; what only the node can count is `inspection.metrics()`. */
import type { ClusterInspection, MemberReport, MetricSample, SingletonDetail } from './inspection.ts';

export interface FeedCounts {
  readonly readers: number;
  readonly cutOff: number;
  readonly refused: number;
}

const statuses = ['joining', 'up', 'leaving', 'exiting', 'down'] as const;

export function* listSamples(inspection: ClusterInspection, feed: FeedCounts): Generator<MetricSample> {
  const { self, leader, members } = inspection.members();
  yield* memberSamples(members, self, leader);
  yield gauge('singlet_ready', 'Whether this node is ready.', Number(inspection.readiness().ready));
  for (const { name } of inspection.singletons()) {
    const detail = inspection.singleton(name);
    if (detail !== undefined) yield* singletonSamples(detail);
  }
  yield gauge('singlet_http_event_readers', 'Readers of /cluster/events.', feed.readers);
  yield counter('singlet_http_event_readers_cut_off_total', 'Readers cut off because they were slow.', feed.cutOff);
  yield counter('singlet_http_event_readers_refused_total', 'Readers refused because of the limit.', feed.refused);
  yield* inspection.metrics();
}

function* memberSamples(members: readonly MemberReport[], self: string, leader: string | null) {
  const own = members.find((member) => member.address === self);
  if (own !== undefined) {
    const labels = { address: own.address, uid: own.uid, runtime: own.runtime, version: own.appVersion };
    yield gauge('singlet_node_info', 'This node.', 1, labels);
  }
  for (const status of statuses) {
    const count = members.filter((member) => member.status === status).length;
    yield gauge('singlet_members', 'Members in the view of this node.', count, { status });
  }
  const unreachable = members.filter((member) => !member.reachable).length;
  yield gauge('singlet_members_unreachable', 'Members that somebody reports as unreachable.', unreachable);
  yield gauge('singlet_leader', 'Whether this node is the leader.', Number(leader === self));
}

function* singletonSamples(detail: SingletonDetail) {
  const labels = { singleton: detail.name };
  yield gauge('singlet_singleton_active', 'Whether an instance runs on this node.', Number(detail.active), labels);
  if (detail.epoch !== null) yield gauge('singlet_singleton_epoch', 'Epoch of the instance.', detail.epoch, labels);
  yield gauge('singlet_singleton_buffered', 'Messages of this node not yet acknowledged.', detail.buffered, labels);
  yield gauge('singlet_singleton_buffered_bytes', 'About their size.', detail.bufferedBytes, labels);
  yield gauge('singlet_singleton_held', 'Accepted by the instance here and not handled yet.', detail.held, labels);
  yield gauge('singlet_singleton_held_bytes', 'About their size.', detail.heldBytes, labels);
  for (const [what, value] of Object.entries(detail.counters)) {
    yield counter('singlet_singleton_total', 'What became of the messages told on this node.', value, {
      ...labels,
      what,
    });
  }
  if (detail.lease !== undefined) {
    const { state, remainingMs, counters } = detail.lease;
    yield gauge('singlet_lease_held', 'Whether this node holds the lease.', Number(state === 'held'), labels);
    yield gauge('singlet_lease_remaining_seconds', 'Until the lease ends here.', remainingMs / 1000, labels);
    for (const [what, value] of Object.entries(counters)) {
      yield counter('singlet_lease_total', 'What became of the tries to have the lease.', value, { ...labels, what });
    }
  }
  const durationMs = detail.lastHandOver?.durationMs ?? null;
  if (durationMs !== null) {
    yield gauge(
      'singlet_singleton_last_hand_over_seconds',
      'How long the last hand-over took.',
      durationMs / 1000,
      labels,
    );
  }
}

function gauge(name: string, help: string, value: number, labels?: Record<string, string>): MetricSample {
  return { name, help, type: 'gauge', value, ...(labels === undefined ? {} : { labels }) };
}

function counter(name: string, help: string, value: number, labels?: Record<string, string>): MetricSample {
  return { ...gauge(name, help, value, labels), type: 'counter' };
}
