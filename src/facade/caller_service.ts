/** What a node does for callers from outside, put together: the gate they come in by, their gateway, and the desk. */
import type { ActorSystem } from '../actor/system.ts';
import type { CallerDesk } from '../callers/desk.ts';
import { CallerGateway } from '../callers/gateway.ts';
import type { MembershipNode } from '../cluster/contract.ts';
import type { ResolvedClusterOptions } from '../cluster/resolved_cluster_options.ts';
import type { MetricSample } from '../http/inspection.ts';
import { CallerGate } from '../transport/caller_gate.ts';
import { closeCodes } from '../transport/close_codes.ts';
import type { Transport } from '../transport/contract.ts';
import type { Runtime } from '../transport/runtime.ts';
import { TokenKeys } from '../transport/token_keys.ts';

export interface CallerServiceParts {
  readonly system: ActorSystem;
  readonly options: ResolvedClusterOptions;
  readonly node: MembershipNode;
  readonly transport: Transport;
  /** Undefined: this node takes no callers. */
  readonly gate: CallerGate | undefined;
}

/** Undefined: this node takes no callers. */
export async function callerGate(
  system: ActorSystem,
  options: ResolvedClusterOptions,
  runtime: Runtime | undefined,
): Promise<CallerGate | undefined> {
  const grants = options.callers.reveal();
  // Another transport than that of WebSockets takes callers by itself, or none.
  if (grants.length === 0 || runtime === undefined || options.transport !== undefined) return undefined;
  const keys = await TokenKeys.import(grants.map(({ tokens }) => tokens));
  const { name: clusterName, frameIntegrity } = options;
  return new CallerGate({ runtime, environment: system.environment, clusterName, keys, frameIntegrity });
}

export class CallerService {
  readonly desk: CallerDesk;
  readonly gateway: CallerGateway | undefined;
  readonly #gate: CallerGate | undefined;

  constructor({ system, options, node, gate, transport }: CallerServiceParts, desk: CallerDesk) {
    this.desk = desk;
    this.#gate = gate;
    const grants = options.callers.reveal();
    if (grants.length === 0) return;
    this.gateway = new CallerGateway({ environment: system.environment, node, desk, grants });
    desk.attach(this.gateway);
    gate?.attach(this.gateway);
    transport.serveCallers?.(this.gateway);
  }

  /** This node is out: callers go to another one. */
  end(): void {
    this.#gate?.close(closeCodes.goingAway, 'this node ends');
    this.gateway?.stop();
    this.desk.end();
  }

  *samples(): Generator<MetricSample> {
    for (const [what, value] of Object.entries(this.desk.counters)) {
      yield counter('singlet_caller_messages_total', 'Messages of callers, at this node.', value, { what });
    }
    yield gauge('singlet_callers_remembered', 'Callers whose way back this node knows.', this.desk.remembered);
    for (const [grant, value] of this.gateway?.connected() ?? []) {
      yield gauge('singlet_callers_connected', 'Callers connected to this node.', value, { grant });
    }
    for (const [why, value] of this.gateway?.ended ?? []) {
      yield counter('singlet_caller_sessions_ended_total', 'Connections of callers that ended, by why.', value, {
        why,
      });
    }
    if (this.#gate === undefined) return;
    const { pending, refused, evicted, failed, forged } = this.#gate.counters;
    yield gauge('singlet_caller_handshakes', 'Callers that have not proved a token yet.', pending);
    const help = 'Connections of would-be callers that came to nothing, by why.';
    for (const [why, value] of Object.entries({ refused, evicted, failed })) {
      yield counter('singlet_caller_connections_refused_total', help, value, { why });
    }
    const forgedHelp = 'Connections of callers ended by a frame whose seal did not fit (frame integrity).';
    yield counter('singlet_caller_forged_frames_total', forgedHelp, forged);
  }
}

function gauge(name: string, help: string, value: number, labels?: Record<string, string>): MetricSample {
  return { name, help, type: 'gauge', value, ...(labels === undefined ? {} : { labels }) };
}

function counter(name: string, help: string, value: number, labels?: Record<string, string>): MetricSample {
  return { ...gauge(name, help, value, labels), type: 'counter' };
}
