import { expect, test } from "vitest";
import type { Server } from "../../api/types";
import { toneOf, totals, verdict } from "./servers";

const server: Server = {
  name: "a",
  url: "https://a",
  state: "online",
  answered_s: 1,
  pools: [],
  alerts: [],
  alerts_open: 0,
  jobs_running: 0,
};
const pool = { name: "tank", state: "online", capacity: 100, used: 10 };
const load = { reads: 1, writes: 2, read_bytes: 3, write_bytes: 4 };

test("totals are sums, and full is what is full first", () => {
  const found = totals([
    { ...pool, seconds_to_full: 500, load },
    { ...pool, used: 40, seconds_to_full: 90, load },
    { ...pool, seconds_to_full: 700 },
    { ...pool, seconds_to_full: null },
  ]);
  expect(found).toEqual({
    used: 70,
    capacity: 400,
    secondsToFull: 90,
    load: { reads: 2, writes: 4, read_bytes: 6, write_bytes: 8 },
  });
  expect(totals([pool])).toMatchObject({ secondsToFull: undefined, load: undefined });
});

test("what is worst is what is told", () => {
  const alert = { severity: "warning" as const, message: "m" };
  for (const [part, tone, words] of [
    [{}, "good", "no problems"],
    [{ state: "asking" }, "busy", "asking"],
    [{ state: "unreachable", alerts: [alert], alerts_open: 1 }, "bad", "unreachable"],
    [{ alerts: [alert], alerts_open: 1 }, "warn", "1 alert"],
    [{ alerts: [{ ...alert, severity: "critical" }], alerts_open: 9 }, "bad", "9 alerts"],
    [{ pools: [{ ...pool, state: "degraded" }] }, "warn", "check its pools"],
    [{ pools: [{ ...pool, state: "failed" }] }, "bad", "check its pools"],
  ] as const) {
    const found = { ...server, ...part } as Server;
    expect([toneOf(found), verdict(found)], JSON.stringify(part)).toEqual([tone, words]);
  }
});
