/** Metrics that only the node can count: dead letters, frames, refusals, reached limits. */
import type { ActorSystem } from '../actor/system.ts';
import type { ClusterNode } from '../cluster/node.ts';
import type { MetricSample } from '../http/inspection.ts';
import type { SingletonRegistry } from '../singleton/registry.ts';
import { registrations } from '../singleton/spawn_registration.ts';
import type { LinkedPeers } from '../transport/peers.ts';

export function nodeSamples(
  system: ActorSystem,
  node: ClusterNode,
  registry: SingletonRegistry,
  peers: LinkedPeers,
): MetricSample[] {
  const samples: MetricSample[] = [];
  for (const [reason, value] of system.deadLetters.countByReason) {
    samples.push(counter('singlet_dead_letters_total', 'Messages that reached nobody.', value, { reason }));
  }
  const { forgotten } = system.deadLetters;
  const about = 'Dead letters that are too large to be kept with the latest.';
  samples.push(counter('singlet_dead_letters_forgotten_total', about, forgotten));
  for (const [what, value] of node.counters()) {
    samples.push(counter('singlet_membership_total', 'What membership refused or noticed.', value, { what }));
  }
  const claim = node.claim();
  if (claim !== undefined) {
    samples.push({
      name: 'singlet_split_undecided',
      help: 'Whether this node waits for the lease that decides about a split.',
      type: 'gauge',
      value: Number(claim.state === 'open' || claim.state === 'asking'),
    });
  }
  for (const [what, value] of Object.entries(peers.counters)) {
    if (typeof value === 'number') {
      samples.push(counter('singlet_links_total', 'Links, frames, bytes and messages.', value, { what }));
    }
  }
  for (const [what, value] of Object.entries(peers.transportCounters)) {
    if (what === 'inbound') {
      samples.push({ ...counter('singlet_connections', 'Inbound connections open now.', value), type: 'gauge' });
    } else {
      samples.push(
        counter('singlet_connections_total', 'Connections refused or ended by the transport.', value, { what }),
      );
    }
  }
  samples.push(
    counter('singlet_singleton_messages_malformed_total', 'Malformed singleton messages.', registry.malformed),
  );
  samples.push({
    name: 'singlet_singletons_registered',
    help: 'Singletons registered with the cluster by spawn.',
    type: 'gauge',
    value: registrations(node.view()).length,
  });
  samples.push({
    name: 'singlet_asks_in_flight',
    help: 'Questions that wait for their reply.',
    type: 'gauge',
    value: system.asks.inFlight,
  });
  return samples;
}

function counter(name: string, help: string, value: number, labels?: Record<string, string>): MetricSample {
  return { name, help, type: 'counter', value, ...(labels ? { labels } : {}) };
}
