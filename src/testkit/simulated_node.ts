/** What a cluster node needs to run in a simulated process. */
import type { Environment } from '../actor/environment.ts';
import type { TransportFactory } from '../cluster/cluster_options.ts';
import { splitAddress } from '../cluster/member.ts';
import type { Runtime } from '../transport/runtime.ts';
import type { SimProcess } from './sim_process.ts';
import { SimTransport } from './sim_transport.ts';

export interface SimulatedNode {
  /** For `ActorSystem.create(name, { environment, logger: environment.log })`. */
  readonly environment: Environment;
  /** For `Cluster.join(system, { ...settings, seeds })`. */
  readonly settings: {
    readonly host: string;
    readonly port: number;
    readonly transport: TransportFactory;
    readonly runtime: Runtime;
    readonly insecure: boolean;
    readonly http: boolean;
  };
}

/**
 * ```ts
 * const world = new World({ seed: 1, drain: 'always' });
 * world.addHost('n1', '10.0.0.1:2550', async (process) => {
 *   const { environment, settings } = simulatedNode(process);
 *   const system = ActorSystem.create('app', { environment, logger: environment.log });
 *   const cluster = await Cluster.join(system, { ...settings, seeds: ['10.0.0.1:2550'] });
 * });
 * ```
 */
export function simulatedNode(process: SimProcess): SimulatedNode {
  const [host, port] = splitAddress(process.host.address);
  const runtime = runtimeOf(process);
  return {
    environment: process.environment,
    settings: {
      host,
      port,
      transport: (identity) => new SimTransport(process, { ...identity, runtime: runtime.name }),
      runtime,
      insecure: true,
      http: false,
    },
  };
}

/** Only its end is ever needed: the transport is the simulated one. */
function runtimeOf(process: SimProcess): Runtime {
  const refuse = () => {
    throw new Error('the simulator has no real network');
  };
  return {
    name: 'node',
    version: 'simulated',
    listen: refuse,
    dial: refuse,
    probe: refuse,
    fetch: refuse,
    randomBytes: refuse,
    onSignal: () => () => {},
    exit: () => process.exit(),
    args: () => [],
    readTextFile: refuse,
    environmentVariable: () => undefined,
  };
}
