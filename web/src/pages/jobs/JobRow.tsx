import { useState } from "react";
import { api } from "../../api/client";
import type { Job } from "../../api/types";
import { bytes, span, time } from "../../format";
import { useMay } from "../../session";
import { Confirm } from "../../ui/Confirm";
import { State } from "../../ui/State";
import { PauseJob } from "./PauseJob";

function pace(job: Job): string {
  if (job.state !== "running") return job.message;
  const left = job.seconds_left;
  const rest = left === undefined || left === null ? "" : `, ${span(left)} left`;
  return `${bytes(job.done)} of ${bytes(job.total)}, ${bytes(job.rate)}/s${rest}`;
}

/** Long work with how far it is. */
export function JobRow({ job }: { job: Job }) {
  const operator = useMay("operator");
  const [cancelling, setCancelling] = useState(false);
  const goes = job.state === "running" || job.state === "paused";
  return (
    <div className="job">
      <div className="job-head">
        <b>
          {job.kind} {job.subject}
        </b>
        <State of={job.state} />
        {operator && goes && <PauseJob job={job} />}
        {operator && goes && (
          <button type="button" className="small" onClick={() => setCancelling(true)}>
            Cancel
          </button>
        )}
      </div>
      <progress max={100} value={job.percent} aria-label={`${job.kind} ${job.subject}`} />
      <small>
        {job.percent.toFixed(1)} % <span>{pace(job)}</span>
        {job.began_s !== undefined && (
          <>
            {" "}
            <time>{time(job.ended_s ?? job.began_s)}</time>
          </>
        )}
      </small>
      {cancelling && (
        <Confirm
          of={{
            title: "Cancel a job",
            what: "Work done so far is kept.",
            name: String(job.id),
            action: "Cancel job",
            run: () => api.post("/v1/jobs/{job}/cancel", { path: { job: job.id } }),
          }}
          onClose={() => setCancelling(false)}
        />
      )}
    </div>
  );
}
