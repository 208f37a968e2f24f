import { useState } from "react";
import { api } from "../../api/client";
import type { Job } from "../../api/types";

/** Has a job rest, or continue. What lives as long as a connection cannot rest. */
export function PauseJob({ job }: { job: Job }) {
  const [failed, setFailed] = useState("");
  if (job.kind === "send" || job.kind === "receive") return null;
  const paused = job.state === "paused";
  const change = async () => {
    const options = { path: { job: job.id } };
    setFailed("");
    try {
      await (paused ? api.post("/v1/jobs/{job}/resume", options) : api.post("/v1/jobs/{job}/pause", options));
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <button type="button" className="small" onClick={() => void change()}>
        {paused ? "Resume" : "Pause"}
      </button>
      {failed !== "" && <span role="alert">{failed}</span>}
    </>
  );
}
