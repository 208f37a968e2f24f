// Reads by where they came from, of the last seconds.
import { useEffect, useState } from "react";
import type { Latency } from "../api/types";
import { SOURCES, between, remember } from "./latency";
import { useData } from "./useData";

/** Seconds from one look to the next. */
const EVERY = 2;
/** Looks that are kept: the window is half a minute. */
const KEPT = 16;

/** Calls `fetch` every two seconds; the result covers the last 30 seconds, or the time since the first call. */
export function useLatency(
  key: string,
  fetch: (signal: AbortSignal) => Promise<Latency>,
): Latency | undefined {
  const { value } = useData(key, fetch, EVERY);
  const [looks, setLooks] = useState<{ key: string; all: Latency[] }>({ key, all: [] });
  useEffect(() => {
    if (!value) return;
    setLooks((before) => ({ key, all: remember(before.key === key ? before.all : [], value, KEPT) }));
  }, [key, value]);
  const last = looks.all.at(-1);
  const first = looks.all[0];
  if (!last || !first || looks.key !== key) return undefined;
  // At the first look all since the pool was opened is shown, rather than nothing.
  if (last === first) return last;
  const told = { ...last };
  for (const source of SOURCES) {
    told[source] = { ...last[source], ...between(first[source], last[source]) };
  }
  return told;
}
