/** `singlet/cluster`: joining a cluster and running singletons in it. */
export { Cluster, ClusterStateError, type JoinControls } from './cluster.ts';
export type { FullShutdownOptions } from './full_shutdown.ts';
export type { ClusterEvent, SubscribeOptions } from './cluster_events.ts';
export { BootstrapError, type DiscoveryOptions } from './discovery.ts';
export { Caller, type CallerEvent, CallerStateError } from '../callers/caller.ts';
export { CallerAskError } from '../callers/caller_ref.ts';
export type { ConnectOptions } from '../callers/caller_options.ts';
export { connect, ConnectError } from '../callers/connect.ts';
export type { Receiver } from '../callers/receiver.ts';
export type { CallerGrant, CallerRight } from '../cluster/caller_grants.ts';
export { ClusterOptions, type ClusterSettings } from '../cluster/cluster_options.ts';
export { JoinError } from '../cluster/join_error.ts';
export type { Member, MemberStatus } from '../cluster/member.ts';
export * from '../cluster/downing/mod.ts';
export * from '../singleton/mod.ts';
