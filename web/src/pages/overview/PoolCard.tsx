import { api } from "../../api/client";
import type { Latency, Pool } from "../../api/types";
import { bytes, count, milliseconds, percent, span } from "../../format";
import { HistoryChart } from "../../history/HistoryCharts";
import { FIRST, FIRST_SERIES } from "../../history/charts";
import { useHistory } from "../../history/useHistory";
import { type Source, percentile } from "../../live/latency";
import type { PoolLive } from "../../live/load";
import { useLatency } from "../../live/useLatency";
import { href } from "../../router";
import { Bar } from "../../ui/Bar";
import { State } from "../../ui/State";

function toFull(pool: Pool): string {
  const spans = (pool.fills ?? [])
    .map((fill) => fill.seconds_to_full)
    .filter((left): left is number => left !== undefined && left !== null);
  if (spans.length > 0) return `full in ${span(Math.min(...spans))}`;
  return "not filling";
}

/** Recent read latency by source: p50 and p99. */
function took(latency: Latency | undefined, source: Source): string {
  if (!latency) return "";
  const at = (share: number) => percentile(latency[source], latency.bounds_ns, share);
  const [half, most] = [at(0.5), at(0.99)];
  return half === undefined || most === undefined
    ? ""
    : `; p50 ${milliseconds(half)}, p99 ${milliseconds(most)}`;
}

function share(part: number | undefined): string {
  return part === undefined || part === 0 ? "–" : `${(part * 100).toFixed(part > 0.995 ? 0 : 1)} %`;
}

/** A pool at a glance. */
export function PoolCard({ pool, live }: { pool: Pool; live: PoolLive | undefined }) {
  const history = useHistory(`pool/${pool.name}`, FIRST_SERIES);
  const load = live?.load;
  const latency = useLatency(`latency ${pool.name}`, (signal) =>
    api.get("/v1/pools/{pool}/latency", { path: { pool: pool.name }, signal }),
  );
  const fast = pool.vdrives.filter((vdrive) => vdrive.tier === "fast");
  return (
    <section className="card pool">
      <header>
        <h2>
          <a href={href("drives")}>{pool.name}</a>
        </h2>
        <State of={pool.state} />
      </header>
      <div className="figures">
        <div>
          <b>{percent(pool.used, pool.capacity).toFixed(pool.used === 0 ? 0 : 1)} %</b>
          <span>
            {bytes(pool.used)} of {bytes(pool.capacity)}, {toFull(pool)}
          </span>
        </div>
        <div>
          <b>{count((load?.readIops ?? 0) + (load?.writeIops ?? 0))}</b>
          <span>IOPS, {bytes((load?.readBytes ?? 0) + (load?.writeBytes ?? 0))}/s</span>
        </div>
        <div>
          <b>{milliseconds(load?.readMs ?? 0)}</b>
          <span>read latency; {milliseconds(load?.writeMs ?? 0)} write</span>
        </div>
      </div>
      <Bar
        label={`Space of ${pool.name}`}
        whole={pool.capacity}
        parts={[
          { name: "used", value: pool.used, tone: "accent" },
          { name: "promised", value: Math.min(pool.reserved, pool.capacity - pool.used), tone: "shadow" },
        ]}
      />
      {history.error !== undefined && <p className="problem">{history.error}</p>}
      <div className="charts">
        {history.value ? (
          FIRST.map((chart) => <HistoryChart key={chart.title} of={chart} history={history.value!} />)
        ) : (
          <div className="charts-wait" />
        )}
      </div>
      <dl className="shares">
        <div className="ram">
          <dt>RAM</dt>
          <dd>
            {share(load?.ram)}{" "}
            <small>
              of reads, {bytes(pool.ram_bytes)}
              {took(latency, "ram")}
            </small>
          </dd>
        </div>
        {fast.length > 0 && (
          <div className="fast">
            <dt>Fast</dt>
            <dd>
              {share(load?.fast)}{" "}
              <small>
                of reads, {bytes(pool.fast_dirty + pool.fast_shadow)}
                {took(latency, "fast")}
              </small>
            </dd>
          </div>
        )}
        <div className="slow">
          <dt>Slow</dt>
          <dd>
            {share(load?.slow)}{" "}
            <small>
              of reads
              {took(latency, "slow")}
            </small>
          </dd>
        </div>
      </dl>
    </section>
  );
}
