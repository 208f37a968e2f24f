// Ticks and labels of axes, and figures thinned out for a table. Pure.

const pad = (value: number) => String(value).padStart(2, "0");

/** A moment in local time, as precise as a span of `seconds` needs. */
export function momentOf(at: number, seconds: number): string {
  const date = new Date(at * 1000);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  if (seconds > 40 * 86_400) return day;
  const minute = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  if (seconds > 86_400) return `${day.slice(5)} ${minute}`;
  return seconds > 900 ? minute : `${minute}:${pad(date.getSeconds())}`;
}

/** Steps between ticks of an axis of bytes: powers of two. */
export const BINARY_STEPS: readonly number[] = Array.from({ length: 63 }, (_, power) => 2 ** power);

/** A row of the table beside a chart: a moment, and the mean of each line since it. */
export interface TableRow {
  at: number;
  values: (number | null)[];
}

/** Means of at most `most` parts of the same length; nothing where no value is known. */
export function thin(at: number[], lines: (number | null)[][], most: number): TableRow[] {
  const step = Math.max(1, Math.ceil(at.length / most));
  const rows: TableRow[] = [];
  for (let from = 0; from < at.length; from += step) {
    const values = lines.map((line) => {
      const known = line.slice(from, from + step).filter((value) => value !== null);
      return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
    });
    rows.push({ at: at[from]!, values });
  }
  return rows;
}

/** Indices of values with no known neighbour, which a line would not show. */
export function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const known = (at: number) => values[at] !== null && values[at] !== undefined;
  const found: number[] = [];
  for (let at = 0; at < values.length; at += 1) {
    if (known(at) && !known(at - 1) && !known(at + 1)) found.push(at);
  }
  return found;
}
