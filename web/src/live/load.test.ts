import { expect, test } from "vitest";
import type { LiveState } from "../api/types";
import { NOTHING, advance, loadBetween } from "./load";

const zero = {
  reads: 0,
  writes: 0,
  read_bytes: 0,
  write_bytes: 0,
  flushes: 0,
  blocks_ram: 0,
  blocks_fast: 0,
  blocks_slow: 0,
  blocks_zero: 0,
  bypassed_reads: 0,
  bypassed_writes: 0,
  bypassed_blocks: 0,
  promoted_bytes: 0,
  demoted_bytes: 0,
  read_ns: 0,
  write_ns: 0,
};

function event(
  at_ms: number,
  whole: boolean,
  reads: number | undefined,
  jobs?: LiveState["jobs"],
): LiveState {
  const counters = { ...zero, reads: reads ?? 0, read_ns: (reads ?? 0) * 2e6, blocks_fast: reads ?? 0 };
  const pool = {
    name: "tank",
    state: "online",
    counters,
    used: 0,
    fast_dirty: 0,
    fast_shadow: 0,
    ram_bytes: 0,
  };
  const volume = { pool: "tank", name: "v", did: [reads ?? 0, 0, 0, 0, 0, 0] };
  const told = reads !== undefined;
  return {
    at_ms,
    whole,
    changes: 1,
    pools: told ? [pool] : [],
    volumes: told ? [volume] : [],
    ...(jobs ? { jobs } : {}),
  };
}

test("a load is what happened between two looks", () => {
  const load = loadBetween([10, 0, 0, 0, 0, 0], [30, 4, 4096, 0, 4e7, 0], 2);
  expect(load).toEqual({ readIops: 10, writeIops: 2, readBytes: 2048, writeBytes: 0, readMs: 2, writeMs: 0 });
});

test("counters that went back count from zero", () => {
  expect(loadBetween([100, 0, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0], 1).readIops).toBe(5);
});

test("the first event has no load, the next has, and silence is rest", () => {
  let live = advance(NOTHING, event(1000, true, 1000, []));
  expect(live.pools.get("tank")?.load.readIops).toBe(0);
  live = advance(live, event(2000, false, 1500));
  expect(live.pools.get("tank")?.load).toMatchObject({ readIops: 500, readMs: 2, fast: 1 });
  expect(live.volumes.get("tank/v")?.load.readIops).toBe(500);
  live = advance(live, event(3000, false, undefined));
  expect(live.pools.get("tank")?.load.readIops).toBe(0);
  expect(live.volumes.get("tank/v")?.load.readIops).toBe(0);
});

test("what a whole event does not name is gone", () => {
  const live = advance(advance(NOTHING, event(1000, true, 1)), event(2000, true, undefined));
  expect([live.pools.size, live.volumes.size]).toEqual([0, 0]);
});
