// The time range that all charts of a page share: the last minutes or days, or what was zoomed into.
import { createContext, useContext, useMemo, useState, type ReactNode } from "react";
import { momentOf } from "./axes";

/** The last `seconds`, or a fixed window in seconds since 1970. */
export type Range = { seconds: number } | { from: number; to: number };

/** Shortest window that can be zoomed into, in seconds: fewer steps say nothing. */
const SHORTEST = 10;

const LASTS: readonly (readonly [number, string])[] = [
  [900, "15 min"],
  [3600, "1 h"],
  [86_400, "24 h"],
  [604_800, "7 d"],
  [2_592_000, "30 d"],
  [63_072_000, "2 y"],
];

interface Shared {
  range: Range;
  /** Shows the last `seconds`. */
  last: (seconds: number) => void;
  /** Shows a window; a second zoom keeps what the first one came from. */
  zoom: (from: number, to: number) => void;
  /** Back to the range before the first zoom. */
  reset: () => void;
}

const RangeContext = createContext<Shared>({
  range: { seconds: 3600 },
  last: () => undefined,
  zoom: () => undefined,
  reset: () => undefined,
});

/** Gives a page its time range, the last hour at first. */
export function RangeProvider({ children }: { children: ReactNode }) {
  const [seconds, setSeconds] = useState(3600);
  const [zoomed, setZoomed] = useState<{ from: number; to: number }>();
  const shared = useMemo<Shared>(
    () => ({
      range: zoomed ?? { seconds },
      last: (chosen) => {
        setSeconds(chosen);
        setZoomed(undefined);
      },
      zoom: (from, to) => setZoomed(windowOf(from, to)),
      reset: () => setZoomed(undefined),
    }),
    [seconds, zoomed],
  );
  return <RangeContext value={shared}>{children}</RangeContext>;
}

/** A window of whole seconds that is not shorter than what is of use. */
export function windowOf(from: number, to: number): { from: number; to: number } {
  const first = Math.floor(Math.min(from, to));
  return { from: first, to: Math.max(Math.ceil(Math.max(from, to)), first + SHORTEST) };
}

/** The start and the end (exclusive) of a range in seconds since 1970, seen at `now`. */
export function boundsOf(range: Range, now: number): { from: number; to: number } {
  if ("from" in range) return range;
  return { from: Math.floor(now) - range.seconds, to: Math.floor(now) };
}

export function useRange(): Shared {
  return useContext(RangeContext);
}

/** Chooses the page's time range, and leaves a zoom. */
export function RangePicker() {
  const { range, last, reset } = useRange();
  return (
    <div className="ranges-bar" role="group" aria-label="Time range">
      {LASTS.map(([seconds, name]) => (
        <button
          key={seconds}
          type="button"
          className="small"
          aria-pressed={"seconds" in range && range.seconds === seconds}
          onClick={() => last(seconds)}
        >
          {name}
        </button>
      ))}
      {"from" in range && (
        <button type="button" className="small" aria-pressed="true" onClick={reset}>
          {momentOf(range.from, range.to - range.from)} – {momentOf(range.to, range.to - range.from)}: reset
          zoom
        </button>
      )}
    </div>
  );
}
