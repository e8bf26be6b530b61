/** A whole node in a simulated process, with what the public classes hide: its membership, its registry, its app. */
import { ActorSystem } from '../../src/actor/system.ts';
import type { ClusterSettings } from '../../src/cluster/cluster_options.ts';
import { resolveClusterOptions } from '../../src/cluster/resolved_cluster_options.ts';
import { assemble, type Assembly } from '../../src/facade/assembly.ts';
import { simulatedNode } from '../../src/testkit/simulated_node.ts';
import type { SimProcess } from '../../src/testkit/sim_process.ts';

/** It looks for its cluster once `node.start()` is called. */
export async function assembleIn(process: SimProcess, more: ClusterSettings): Promise<Assembly> {
  const { environment, settings } = simulatedNode(process);
  const system = ActorSystem.create('sim', { environment, logger: environment.log });
  const options = resolveClusterOptions({ ...settings, ...more }, { systemName: 'sim', log: environment.log });
  return await assemble(system, options, environment.uid!());
}
