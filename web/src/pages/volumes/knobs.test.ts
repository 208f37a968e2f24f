import { expect, test } from "vitest";
import type { Volume } from "../../api/types";
import { changeOf, expectedOf, knobsOf } from "./knobs";

const volume = {
  quota: 2 ** 30,
  placement: { promotion: true, pins: [], reaction: "normal", bypass: { initiators: ["a", "b"] } },
} as unknown as Volume;

test("only what was changed is asked for", () => {
  const before = knobsOf(volume);
  expect(changeOf(before, before)).toEqual({});
  expect(changeOf(before, { ...before, reaction: "eager", fastFloor: "1G" })).toEqual({
    reaction: "eager",
    fast_floor: 2 ** 30,
  });
});

test("what is emptied is taken away", () => {
  const before = knobsOf(volume);
  expect(changeOf(before, { ...before, quota: " ", bypass: "" })).toEqual({ quota: 0, bypass: [] });
});

test("a size that cannot be read changes nothing", () => {
  const before = knobsOf(volume);
  expect(changeOf(before, { ...before, quota: "much" })).toBeUndefined();
});

test("what is expected is asked for in the interface's units", () => {
  const expected = { ...volume, targets: { iops: 5000, latency_ns: 2_500_000 } } as Volume;
  const before = knobsOf(expected);
  expect([before.targetIops, before.targetBandwidth, before.targetLatency]).toEqual(["5000", "", "2.5"]);
  expect(
    changeOf(before, { ...before, targetIops: "", targetLatency: "0.5", targetBandwidth: "1M" }),
  ).toEqual({
    target_iops: 0,
    target_latency_ns: 500_000,
    target_bandwidth: 2 ** 20,
  });
  expect(changeOf(before, { ...before, targetLatency: "fast" })).toBeUndefined();
  expect(expectedOf(expected.targets)).toBe("5000 IOPS, p99 within 2.5 ms");
  expect(expectedOf(undefined)).toBe("");
});
