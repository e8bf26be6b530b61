/** A second cluster for one actor system, a cluster used after it was left, or a call that its members do not answer. */
export class ClusterStateError extends Error {
  override readonly name = 'ClusterStateError';
}
