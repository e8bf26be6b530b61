/** `singlet/cluster`: joining a cluster and running singletons in it. */
export { Cluster, ClusterStateError, type JoinControls, type SubscribeOptions } from './cluster.ts';
export type { ClusterEvent } from './cluster_events.ts';
export { ClusterOptions, type ClusterSettings } from '../cluster/cluster_options.ts';
export { JoinError } from '../cluster/join_error.ts';
export type { Member, MemberStatus } from '../cluster/member.ts';
export * from '../cluster/downing/mod.ts';
export * from '../singleton/mod.ts';
