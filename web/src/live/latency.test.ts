import { expect, test } from "vitest";
import type { Latency } from "../api/types";
import { between, percentile, remember, rows } from "./latency";

const none = { counts: [0, 0, 0], ns: 0 };
const bounds = [1e6, 2e6];

test("a window has what was counted since its first look, or all when the pool was opened anew", () => {
  const after = { counts: [3, 2, 1], ns: 9 };
  expect(between(undefined, after)).toEqual(after);
  expect(between({ counts: [1, 2, 0], ns: 4 }, after)).toEqual({ counts: [2, 0, 1], ns: 5 });
  expect(between({ counts: [4, 0, 0], ns: 4 }, after)).toEqual(after);
});

test("percentiles lie between bounds, and what is beyond the last is told as that", () => {
  expect(percentile(none, bounds, 0.5)).toBeUndefined();
  expect(percentile({ counts: [2, 2, 0], ns: 0 }, bounds, 0.25)).toBe(0.5);
  expect(percentile({ counts: [2, 2, 0], ns: 0 }, bounds, 0.75)).toBe(1.5);
  expect(percentile({ counts: [0, 0, 5], ns: 0 }, bounds, 0.99)).toBe(2);
});

test("rows begin and end where something was read, and only the last looks are kept", () => {
  const latency: Latency = { bounds_ns: bounds, ram: none, fast: { counts: [0, 4, 0], ns: 1 }, slow: none };
  expect(rows(latency)).toEqual([{ upTo: 2, counts: { ram: 0, fast: 4, slow: 0 } }]);
  expect(rows({ ...latency, fast: none })).toEqual([]);
  expect(remember([latency, latency], latency, 2)).toHaveLength(2);
});
