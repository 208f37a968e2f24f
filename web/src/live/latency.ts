// How long reads took, by where blocks came from: of a window between two looks. Pure.
import type { Latency } from "../api/types";

export const SOURCES = ["ram", "fast", "slow"] as const;
export type Source = (typeof SOURCES)[number];

export const SOURCE_NAMES: Record<Source, string> = { ram: "RAM", fast: "Fast tier", slow: "Slow tier" };

/** Counts by bounds of one source, and their sum of nanoseconds. */
export interface Times {
  counts: number[];
  ns: number;
}

/** Difference between two readings; everything if a counter decreased, as after the pool was opened again. */
export function between(before: Times | undefined, after: Times): Times {
  if (!before) return after;
  const counts = after.counts.map((count, at) => count - (before.counts[at] ?? 0));
  const ns = after.ns - before.ns;
  return ns < 0 || counts.some((count) => count < 0) ? after : { counts, ns };
}

export function total(times: Times): number {
  return times.counts.reduce((sum, count) => sum + count, 0);
}

/** The time in milliseconds in which this share of reads ended, with a straight line between two bounds. */
export function percentile(times: Times, bounds: number[], share: number): number | undefined {
  const all = total(times);
  let rest = share * all;
  let below = 0;
  for (const [at, bound] of bounds.entries()) {
    const count = times.counts[at] ?? 0;
    if (count > 0 && rest <= count) return (below + ((bound - below) * rest) / count) / 1e6;
    rest -= count;
    below = bound;
  }
  return all > 0 ? below / 1e6 : undefined;
}

/** The last looks that are kept: reads of the window since the first of them are shown. */
export function remember(looks: Latency[], look: Latency, most: number): Latency[] {
  return [...looks, look].slice(-most);
}

/** One row a bound that has some reads: how many came from each source. */
export interface Row {
  /** Milliseconds; nothing behind the last bound. */
  upTo: number | undefined;
  counts: Record<Source, number>;
}

export function rows(latency: Latency): Row[] {
  const all = [...latency.bounds_ns, undefined].map((bound, at): Row => {
    const count = (source: Source) => latency[source].counts[at] ?? 0;
    return {
      upTo: bound === undefined ? undefined : bound / 1e6,
      counts: { ram: count("ram"), fast: count("fast"), slow: count("slow") },
    };
  });
  const some = (row: Row) => SOURCES.some((source) => row.counts[source] > 0);
  const first = all.findIndex(some);
  return first < 0 ? [] : all.slice(first, all.findLastIndex(some) + 1);
}
