import { useState } from "react";
import { api } from "../../api/client";
import { RangePicker } from "../../chart/range";
import { many } from "../../format";
import { useData } from "../../live/useData";
import { useLive } from "../../live/stream";
import { href } from "../../router";
import { useMay } from "../../session";
import { Card, Page } from "../../ui/Page";
import { CreatePool } from "../drives/CreatePool";
import { CreateVolume } from "../volumes/CreateVolume";
import { JobRow } from "../jobs/JobRow";
import { LastChanges } from "./LastChanges";
import { PoolCard } from "./PoolCard";
import { matters, ofLate } from "./health";

async function look(signal: AbortSignal) {
  const [pools, exports, schedules, volumes] = await Promise.all([
    api.get("/v1/pools", { signal }),
    api.get("/v1/exports", { signal }),
    api.get("/v1/schedules", { signal }),
    api.get("/v1/volumes", { signal }),
  ]);
  return {
    pools: pools.items,
    absent: pools.absent,
    exports: exports.items,
    schedules: schedules.items,
    volumes: volumes.items,
  };
}

function Health({ known }: { known: Awaited<ReturnType<typeof look>> }) {
  const jobs = ofLate(useLive().jobs, Date.now() / 1000);
  const found = matters({ ...known, jobs });
  if (found.length === 0) {
    return (
      <section className="health good" aria-label="Health">
        <strong>No problems</strong>
        <span>
          {many(known.pools.length, "pool")}, {many(known.volumes.length, "volume")},{" "}
          {many(known.exports.length, "export")}
        </span>
      </section>
    );
  }
  return (
    <section className={`health ${found[0]!.tone}`} aria-label="Health">
      <strong>
        {found.length} {found.length === 1 ? "thing needs" : "things need"} attention
      </strong>
      <ul>
        {found.slice(0, 8).map((matter) => (
          <li key={matter.text} className={matter.tone}>
            <a href={href(matter.place)}>{matter.text}</a>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Overview() {
  const { value, error } = useData("overview", look, 10);
  const live = useLive();
  const operator = useMay("operator");
  const admin = useMay("admin");
  const [making, setMaking] = useState<"pool" | "volume">();
  const running = live.jobs.filter((job) => job.state === "running" || job.state === "paused");
  const fresh = value !== undefined && value.pools.length + value.absent.length === 0;
  return (
    <Page
      title="Overview"
      error={error}
      actions={
        <>
          {!fresh && <RangePicker />}
          {admin && !fresh && (
            <button type="button" onClick={() => setMaking("pool")}>
              New pool
            </button>
          )}
          {operator && value !== undefined && value.pools.length > 0 && (
            <button type="button" className="primary" onClick={() => setMaking("volume")}>
              New volume
            </button>
          )}
        </>
      }
    >
      {fresh && (
        <section className="first-run">
          <h2>No pools yet</h2>
          <p>
            A pool joins fast and slow drives. Volumes in it are given to virtual machines and hosts; what is
            hot rises to RAM and the fast drives by itself.
          </p>
          {admin ? (
            <button type="button" className="primary" onClick={() => setMaking("pool")}>
              Create a pool
            </button>
          ) : (
            <p>An administrator has to create the first pool.</p>
          )}
        </section>
      )}
      {value && !fresh && <Health known={value} />}
      <div className="cards">
        {value?.pools.map((pool) => (
          <PoolCard key={pool.id} pool={pool} live={live.pools.get(pool.name)} />
        ))}
      </div>
      {!fresh && (
        <div className="columns">
          <Card title="Running">
            {running.length === 0 ? (
              <p className="empty">No running jobs.</p>
            ) : (
              running.map((job) => <JobRow key={job.id} job={job} />)
            )}
          </Card>
          <Card title="Recent changes">
            <LastChanges />
          </Card>
        </div>
      )}
      {making === "pool" && <CreatePool onClose={() => setMaking(undefined)} />}
      {making === "volume" && value && (
        <CreateVolume pools={value.pools} onClose={() => setMaking(undefined)} />
      )}
    </Page>
  );
}
