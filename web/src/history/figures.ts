// Figures of something over time, as the charts have them. Pure.
import type { History } from "../api/types";
import { bytes, milliseconds } from "../format";

export type Series = History["series"][number];

/** The start of each step, in seconds since 1970. */
export function momentsOf(history: History): number[] {
  const steps = Math.max(0, ...history.series.map((series) => series.values.length));
  return Array.from({ length: steps }, (_, at) => history.from_s + at * history.step_s);
}

/**
 * A figure's values; where none is known it is drawn as `gap`, or not at all. A logarithmic axis has no place for what
 * is not positive.
 */
export function valuesOf(
  history: History,
  name: string,
  gap: number | null = null,
  logarithmic = false,
): (number | null)[] {
  const found = history.series.find((series) => series.name === name);
  return (found?.values ?? []).map((value) => {
    const known = value ?? gap;
    return logarithmic && known !== null && known <= 0 ? null : known;
  });
}

/** The greatest of a figure; nothing when none is known. */
export function mostOf(history: History, name: string): number | undefined {
  const found = history.series.find((series) => series.name === name);
  const known = (found?.values ?? []).filter((value): value is number => typeof value === "number");
  return known.length === 0 ? undefined : known.reduce((most, value) => Math.max(most, value));
}

export interface Part {
  name: string;
  reads: number;
  writes: number;
}

/** Counts by bounds, without those before the first and behind the last that has some. */
function parts(names: string[], reads: number[], writes: number[]): Part[] {
  const all = names.map((name, at) => ({ name, reads: reads[at] ?? 0, writes: writes[at] ?? 0 }));
  const some = (part: Part) => part.reads + part.writes > 0;
  const first = all.findIndex(some);
  const last = all.findLastIndex(some);
  return first < 0 ? [] : all.slice(first, last + 1);
}

/** Operations by how long they took. */
export function timesOf({ spreads }: History): Part[] {
  if (!spreads) return [];
  const names = spreads.time_bounds.map((bound) => `up to ${milliseconds(bound * 1000)}`);
  const last = spreads.time_bounds.at(-1) ?? 0;
  return parts([...names, `over ${milliseconds(last * 1000)}`], spreads.reads.times, spreads.writes.times);
}

/** Operations by how large they were. */
export function sizesOf({ spreads }: History): Part[] {
  if (!spreads) return [];
  const names = spreads.size_bounds.map((bound) => `up to ${bytes(bound)}`);
  const last = spreads.size_bounds.at(-1) ?? 0;
  return parts([...names, `over ${bytes(last)}`], spreads.reads.sizes, spreads.writes.sizes);
}
