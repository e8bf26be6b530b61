/** What an actor sees of its cluster as `this.cluster`: the public `Cluster`, by type only. */
import type { Cluster } from '../facade/cluster.ts';

export type ClusterHandle = Cluster;
