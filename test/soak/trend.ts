/** A straight line through measurements, by least squares, and how far off its slope may be by chance. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Trend {
  readonly slope: number;
  /** Standard error of the slope: what scatters by chance stays within twice of it, 19 times in 20. */
  readonly error: number;
}

/** Fewer than three points say nothing: slope 0, with an error without bound. */
export function trendOf(points: readonly Point[]): Trend {
  const meanX = mean(points.map(({ x }) => x));
  const meanY = mean(points.map(({ y }) => y));
  const spread = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
  if (points.length < 3 || spread === 0) return { slope: 0, error: Infinity };
  const slope = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread;
  const rest = points.reduce((sum, { x, y }) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (points.length - 2) / spread) };
}

/** It rises by more than `most`, and chance does not explain it. */
export function growsBeyond({ slope, error }: Trend, most: number): boolean {
  return slope - 2 * error > most;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
