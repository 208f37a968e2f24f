import { api } from "../../api/client";
import { count, milliseconds } from "../../format";
import { SOURCES, SOURCE_NAMES, percentile, rows, total } from "../../live/latency";
import { useLatency } from "../../live/useLatency";

/** How long reads of a volume took, by where blocks came from: a histogram beside its percentiles. */
export function TierLatency({ pool, volume }: { pool: string; volume: string }) {
  const latency = useLatency(`latency ${pool}/${volume}`, (signal) =>
    api.get("/v1/volumes/{pool}/{volume}/latency", { path: { pool, volume }, signal }),
  );
  if (!latency) return null;
  const all = rows(latency);
  if (all.length === 0) return <p className="empty">No reads in the last 30 seconds.</p>;
  const most = Math.max(1, ...all.flatMap((row) => SOURCES.map((source) => row.counts[source])));
  const told = (source: (typeof SOURCES)[number], share: number) => {
    const ms = percentile(latency[source], latency.bounds_ns, share);
    return ms === undefined ? "–" : milliseconds(ms);
  };
  return (
    <table className="spread tiers">
      <caption>Reads of the last 30 seconds by latency and tier</caption>
      <thead>
        <tr>
          <th scope="col">Took</th>
          {SOURCES.map((source) => (
            <th scope="col" key={source}>
              {SOURCE_NAMES[source]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {all.map((row) => (
          <tr key={row.upTo ?? "over"}>
            <th scope="row">{row.upTo === undefined ? "longer" : `up to ${milliseconds(row.upTo)}`}</th>
            {SOURCES.map((source) => (
              <td key={source}>
                <span
                  className={source}
                  style={{ width: `${(row.counts[source] / most) * 100}%` }}
                  aria-hidden="true"
                />
                {count(row.counts[source])}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
      <tfoot>
        {[
          ["p50", 0.5],
          ["p99", 0.99],
          ["p99.9", 0.999],
        ].map(([name, share]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            {SOURCES.map((source) => (
              <td key={source}>{told(source, Number(share))}</td>
            ))}
          </tr>
        ))}
        <tr>
          <th scope="row">All</th>
          {SOURCES.map((source) => (
            <td key={source}>{count(total(latency[source]))}</td>
          ))}
        </tr>
      </tfoot>
    </table>
  );
}
