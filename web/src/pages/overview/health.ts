// Problems that need attention, most urgent first. Pure.
import type { AbsentPool, Export, Job, Pool, Schedule } from "../../api/types";
import { span } from "../../format";

export interface Matter {
  tone: "bad" | "warn";
  text: string;
  /** Where to do something about it. */
  place: string;
}

interface Known {
  pools: Pool[];
  absent: AbsentPool[];
  exports: Export[];
  jobs: Job[];
  schedules: Schedule[];
}

/** A pool that will be full within this many seconds is urgent. */
const SOON = 7 * 86_400;

function ofPool(pool: Pool): Matter[] {
  const matters: Matter[] = pool.messages.map((text) => ({
    tone: pool.state === "online" ? "warn" : "bad",
    text: `${pool.name}: ${text}`,
    place: "drives",
  }));
  if (pool.protection?.by_design === 0) {
    matters.push({
      tone: "warn",
      text: `${pool.name}: no redundancy: the failure of one drive loses data`,
      place: "drives",
    });
  }
  for (const fill of pool.fills ?? []) {
    const left = fill.seconds_to_full;
    if (left !== undefined && left !== null && left < SOON) {
      matters.push({
        tone: left < 86_400 ? "bad" : "warn",
        text: `${pool.name}: ${fill.part} is full in ${span(left)} if it goes on like this`,
        place: "drives",
      });
    }
  }
  for (const drive of pool.vdrives.flatMap((vdrive) => vdrive.drives)) {
    if (drive.slow) {
      matters.push({ tone: "warn", text: `${pool.name}: ${drive.spec} is slow`, place: "drives" });
    }
  }
  const lost = pool.scrub?.lost ?? 0;
  if (lost > 0) {
    matters.push({
      tone: "bad",
      text: `${pool.name}: the scrub found ${lost} blocks without a right copy`,
      place: "drives",
    });
  } else if ((pool.opening_lost ?? 0) > 0) {
    matters.push({
      tone: "bad",
      text: `${pool.name}: its opening found ${pool.opening_lost} blocks lost`,
      place: "drives",
    });
  }
  return matters;
}

/** A failed job is shown for this many seconds; the list of jobs keeps it longer. */
const FAILED_MATTERS = 86_400;

/** Without the jobs that failed long before `now`, in seconds since 1970. */
export function ofLate(jobs: Job[], now: number): Job[] {
  return jobs.filter((job) => job.state !== "failed" || (job.ended_s ?? now) > now - FAILED_MATTERS);
}

export function matters({ pools, absent, exports, jobs, schedules }: Known): Matter[] {
  const all: Matter[] = [
    ...absent.map((pool): Matter => ({ tone: "bad", text: pool.message, place: "drives" })),
    ...pools.flatMap(ofPool),
    ...exports
      .filter((known) => known.state !== "online" && known.state !== "disabled")
      .map((known): Matter => ({
        tone: "bad",
        text: `export ${known.name}: ${known.error ?? known.state}`,
        place: "exports",
      })),
    ...jobs
      .filter((job) => job.state === "failed")
      .map((job): Matter => ({
        tone: "warn",
        text: `${job.kind} ${job.subject}: ${job.message}`,
        place: "jobs",
      })),
    ...schedules
      .filter((schedule) => schedule.error)
      .map((schedule): Matter => ({
        tone: "warn",
        text: `schedule ${schedule.pool}/${schedule.name}: ${schedule.error}`,
        place: "snapshots",
      })),
  ];
  return all.sort((one, other) => Number(one.tone === "warn") - Number(other.tone === "warn"));
}
