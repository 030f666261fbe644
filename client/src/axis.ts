// Axes of plots.

/** The range of an axis: with a margin, and never so narrow that rounding looks like motion. */
export function widened(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [-1, 1];
  const least = Math.max(1e-3, 1e-6 * Math.max(Math.abs(low), Math.abs(high)));
  const margin = high - low < least ? Math.max(1, 0.1 * Math.abs(high)) : 0.08 * (high - low);
  return [low - margin, high + margin];
}
