// The ranges of a volume that are used most. Pure.
import type { VolumeMap } from "../../api/types";

export interface Range {
  /** First byte, and how many there are. */
  start: number;
  length: number;
  uses: number;
  /** Where most of it is read from. */
  from: "ram" | "fast" | "slow";
}

/** Parts of a map that were used, the most used first; neighbours that were used as much are one. */
export function topRanges(map: VolumeMap, most: number): Range[] {
  const begin = map.start ?? 0;
  const each = (map.size - begin) / Math.max(1, map.cells.length);
  const found: Range[] = [];
  for (const [at, cell] of map.cells.entries()) {
    const uses = cell.uses ?? 0;
    if (uses === 0) continue;
    const parts = [
      ["ram", cell.ram],
      ["fast", cell.fast],
      ["slow", cell.slow],
    ] as const;
    const [from] = parts.reduce((best, part) => (part[1] > best[1] ? part : best));
    const start = begin + at * each;
    const last = found.at(-1);
    if (last && last.uses === uses && last.from === from && last.start + last.length === start) {
      last.length += each;
    } else {
      found.push({ start, length: each, uses, from });
    }
  }
  return found.sort((one, other) => other.uses - one.uses || one.start - other.start).slice(0, most);
}
