import { useMemo } from "react";
import { api } from "../../api/client";
import type { Latency } from "../../api/types";
import { Histogram } from "../../chart/Histogram";
import { count, milliseconds } from "../../format";
import { SOURCES, SOURCE_NAMES, percentile, rows, total } from "../../live/latency";
import { useLatency } from "../../live/useLatency";

const SHARES = [
  ["p50", 0.5],
  ["p99", 0.99],
  ["p99.9", 0.999],
] as const;

/** What the histogram shows of a reading, with percentiles beneath its table. */
function shownOf(latency: Latency) {
  const all = rows(latency);
  const at = (source: (typeof SOURCES)[number], share: number) => {
    const ms = percentile(latency[source], latency.bounds_ns, share);
    return ms === undefined ? "–" : milliseconds(ms);
  };
  const below: [string, string[]][] = SHARES.map(([name, share]) => [
    name,
    SOURCES.map((source) => at(source, share)),
  ]);
  below.push(["All", SOURCES.map((source) => count(total(latency[source])))]);
  return {
    buckets: all.map((row) => (row.upTo === undefined ? "longer" : `up to ${milliseconds(row.upTo)}`)),
    bars: SOURCES.map((source) => ({
      name: SOURCE_NAMES[source],
      tone: source,
      counts: all.map((row) => row.counts[source]),
    })),
    below,
  };
}

/** Latency of a volume's reads by where the blocks came from: a histogram, its table and percentiles. */
export function TierLatency({ pool, volume }: { pool: string; volume: string }) {
  const latency = useLatency(`latency ${pool}/${volume}`, (signal) =>
    api.get("/v1/volumes/{pool}/{volume}/latency", { path: { pool, volume }, signal }),
  );
  const shown = useMemo(() => (latency ? shownOf(latency) : undefined), [latency]);
  if (!shown) return null;
  if (shown.buckets.length === 0) return <p className="empty">No reads in the last 30 seconds.</p>;
  return <Histogram title="Reads of the last 30 seconds" {...shown} />;
}
