import { expect, test } from "vitest";
import type { Export, Job, Pool } from "../../api/types";
import { matters, ofLate } from "./health";

const pool = {
  name: "tank",
  state: "online",
  messages: [],
  fills: [],
  vdrives: [],
} as unknown as Pool;
const none = { pools: [], absent: [], exports: [], jobs: [], schedules: [] };

test("nothing is said when all is well", () => {
  expect(matters({ ...none, pools: [pool] })).toEqual([]);
});

test("what is urgent comes first, with where to do something about it", () => {
  const fill = (seconds_to_full: number) =>
    ({ part: "slow", seconds_to_full }) as NonNullable<Pool["fills"]>[0];
  const failed = { name: "e", state: "failed", error: "its port is in use" } as Export;
  const told = matters({
    ...none,
    pools: [
      { ...pool, fills: [fill(3 * 86_400), fill(3600), fill(30 * 86_400)] },
      { ...pool, state: "degraded", messages: ["a mirror lacks a drive"] },
    ],
    exports: [failed],
  });
  expect(told.map(({ tone, text, place }) => [tone, text, place])).toEqual([
    ["bad", "tank: slow is full in 1 h if it goes on like this", "drives"],
    ["bad", "tank: a mirror lacks a drive", "drives"],
    ["bad", "export e: its port is in use", "exports"],
    ["warn", "tank: slow is full in 3 d if it goes on like this", "drives"],
  ]);
});

test("a pool without redundancy is never well, and an export that a user disabled is", () => {
  const bare = { ...pool, protection: { survives_failures: 0, by_design: 0 } };
  const disabled = { name: "e", state: "disabled" } as Export;
  const told = matters({ ...none, pools: [bare], exports: [disabled] });
  expect(told.map(({ tone, text }) => [tone, text])).toEqual([
    ["warn", "tank: no redundancy: the failure of one drive loses data"],
  ]);
});

test("a job that failed matters for a day", () => {
  const job = (state: Job["state"], ended_s?: number) => ({ id: ended_s ?? 0, state, ended_s }) as Job;
  const now = 1_000_000;
  const jobs = [job("failed", now - 100), job("failed", now - 90_000), job("done", 5), job("running")];
  expect(ofLate(jobs, now).map((known) => known.id)).toEqual([now - 100, 5, 0]);
});
