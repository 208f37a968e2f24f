// A volume's map as received from the daemon, and its colours. Pure.
import type { LiveMap } from "../../api/types";

/** State of a map: its range, and one code per part. */
export interface Picture {
  size: number;
  start: number;
  length: number;
  codes: Uint16Array;
  /** When each part changed last, as the caller counts time. */
  changed: Float64Array;
}

/** State after one more event; `before` is modified if only parts changed. */
export function applied(before: Picture | undefined, event: LiveMap, now: number): Picture | undefined {
  if (typeof event.all === "string") {
    const codes = new Uint16Array(event.cells);
    for (let at = 0; at < event.cells; at += 1) codes[at] = parseInt(event.all.slice(at * 4, at * 4 + 4), 16);
    const same =
      before?.codes.length === codes.length && before.start === event.start && before.length === event.length;
    const changed = new Float64Array(event.cells).fill(-Infinity);
    if (same) {
      for (let at = 0; at < codes.length; at += 1) {
        changed[at] = codes[at] === before.codes[at] ? before.changed[at]! : now;
      }
    }
    return { size: event.size, start: event.start, length: event.length, codes, changed };
  }
  if (!before || typeof event.changed !== "string") return before;
  for (let at = 0; at + 8 <= event.changed.length; at += 8) {
    const cell = parseInt(event.changed.slice(at, at + 4), 16);
    if (cell < before.codes.length) {
      before.codes[cell] = parseInt(event.changed.slice(at + 4, at + 8), 16);
      before.changed[cell] = now;
    }
  }
  return before;
}

export interface Cell {
  ram: number;
  fast: number;
  slow: number;
  uses: number;
}

/** Shares of a part in fifteenths (0 to 15, rounded up), and its accesses (15: 15 or more). */
export function cellOf(code: number): Cell {
  return { ram: code >> 12, fast: (code >> 8) & 15, slow: (code >> 4) & 15, uses: code & 15 };
}

export type Rgb = readonly [number, number, number];

/** The hues of the tiers, and of what was never written. */
export interface Palette {
  ram: Rgb;
  fast: Rgb;
  slow: Rgb;
  empty: Rgb;
}

/** Stripes that a part is drawn with, beside each other. */
export const STRIPES = 4;

/**
 * A part's stripes: each has the hue of one tier, as many as it holds of the part, the fastest first; brighter the
 * hotter it is. What holds anything has one stripe at least.
 */
export function stripesOf(code: number, palette: Palette): Rgb[] {
  const { ram, fast, slow, uses } = cellOf(code);
  const bright = 0.45 + 0.55 * (Math.min(uses, 10) / 10);
  const shaded = (hue: Rgb): Rgb => {
    const towards = (at: 0 | 1 | 2) => Math.round(palette.empty[at] + (hue[at] - palette.empty[at]) * bright);
    return [towards(0), towards(1), towards(2)];
  };
  const stripes: Rgb[] = [];
  let sum = 0;
  for (const [share, hue] of [
    [ram, palette.ram],
    [fast, palette.fast],
    [slow, palette.slow],
  ] as const) {
    sum += share;
    const upTo = Math.min(Math.round((Math.min(sum, 15) / 15) * STRIPES), STRIPES);
    while (stripes.length < upTo) stripes.push(shaded(hue));
    if (share > 0 && stripes.length === 0) stripes.push(shaded(hue));
  }
  while (stripes.length < STRIPES) stripes.push(palette.empty);
  return stripes;
}

/** How parts are laid out in rows: as many columns as fit, so that parts are about as wide as tall. */
export function columnsFor(cells: number, width: number, height: number): number {
  const side = Math.sqrt((width * height) / cells);
  const wanted = Math.max(1, Math.round(width / Math.max(side, 1)));
  let columns = 1;
  while (columns * 2 <= wanted) columns *= 2;
  return Math.min(columns, cells);
}

/** Parts into which a range is cut: as many as can be seen, and none smaller than a chunk of 1 MiB. */
export function cellsFor(length: number): number {
  const chunks = Math.max(1, Math.floor(length / (1 << 20)));
  let cells = 1;
  while (cells * 2 <= Math.min(chunks, 4096)) cells *= 2;
  return cells;
}
