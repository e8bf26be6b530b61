/** Schemes of refs between a caller and its cluster, in the place of a uid. */
export const schemes = { receiver: 'receiver', singleton: 'singleton', nowhere: 'nowhere' } as const;
