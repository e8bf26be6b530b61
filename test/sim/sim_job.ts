/** What a worker of the pool is asked, and what it answers. */
export interface SimJob {
  readonly program: string;
  /** When absent, the profiles take turns with the seed, as at the command line. */
  readonly profile?: string;
  readonly from: number;
  readonly to: number;
  /** Length of the fault phase; the profile's own when absent. */
  readonly faultMs?: number;
}

export interface SimAnswer {
  readonly runs: number;
  readonly steps: number;
  readonly ms: number;
  /** The seed that broke a rule; the runs end with it. */
  readonly failed?: number;
}

/** Begins the line that ends a job. */
export const done = '@done ';
