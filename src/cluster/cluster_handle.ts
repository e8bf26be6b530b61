/** What an actor sees of its cluster as `this.cluster`. */
export interface ClusterHandle {
  readonly singleton: unknown;
}
