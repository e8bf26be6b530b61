/** The public entry `singlet/coordination`: leases, and the backends that need nothing but `fetch` or the cluster itself. */
export {
  type Lease,
  type LeaseContext,
  LeaseError,
  type LeaseFactory,
  type LeaseGrant,
  type LeaseSettings,
  type ResolvedLease,
  resolveLease,
  settingsFor,
} from './lease.ts';
export type { LeaseStore, ReleaseAnswer, StoreAnswer, StoreRequest } from './lease_store.ts';
export { MemoryLease, MemoryLeaseStore } from './memory_lease.ts';
export { EtcdLease, type EtcdSettings } from './etcd_lease.ts';
export type { HttpMeans } from './http_means.ts';
export { KubernetesLease, type KubernetesSettings } from './kubernetes_lease.ts';
export { QuorumLease } from './quorum_lease.ts';
export { type LeaseCounts, StoreLease } from './store_lease.ts';
