import { expect, test } from "vitest";
import type { History } from "../api/types";
import { momentsOf, mostOf, sizesOf, timesOf, valuesOf } from "./figures";

const history: History = {
  object: "volume/tank/v",
  from_s: 0,
  step_s: 1,
  series: [{ name: "reads", unit: "1/s", values: [1, null, 3] }],
  spreads: {
    time_bounds: [0.000004096, 0.000008192, 0.000016384],
    size_bounds: [512, 1024],
    reads: { times: [0, 5, 0, 0], sizes: [0, 2, 0] },
    writes: { times: [0, 0, 0, 7], sizes: [0, 0, 1] },
  },
};

test("what is not known is drawn as nothing and is not the greatest", () => {
  expect(valuesOf(history, "reads")).toEqual([1, null, 3]);
  expect(valuesOf(history, "reads", 1)).toEqual([1, 1, 3]);
  expect(
    valuesOf({ ...history, series: [{ name: "p50", unit: "s", values: [0, 2] }] }, "p50", null, true),
  ).toEqual([null, 2]);
  expect(valuesOf(history, "writes")).toEqual([]);
  expect(mostOf(history, "reads")).toBe(3);
  expect(mostOf(history, "writes")).toBeUndefined();
});

test("each step has its moment", () => {
  expect(momentsOf({ ...history, from_s: 60, step_s: 10 })).toEqual([60, 70, 80]);
  expect(momentsOf({ ...history, series: [] })).toEqual([]);
});

test("counts are told from the first bound that has some to the last", () => {
  expect(timesOf(history)).toEqual([
    { name: "up to 8 µs", reads: 5, writes: 0 },
    { name: "up to 16 µs", reads: 0, writes: 0 },
    { name: "over 16 µs", reads: 0, writes: 7 },
  ]);
  expect(sizesOf(history)).toEqual([
    { name: "up to 1 KiB", reads: 2, writes: 0 },
    { name: "over 1 KiB", reads: 0, writes: 1 },
  ]);
  expect(timesOf({ ...history, spreads: null })).toEqual([]);
});
