import { expect, test } from "vitest";
import type { QosPolicy, VolumeQos } from "../../api/types";
import { allowed, changeOf, choiceOf, figuresOf, guaranteed, met, NEW } from "./policies";

const policy: QosPolicy = {
  id: 100,
  name: "gold",
  built_in: false,
  level: 2,
  min_iops: 20_000,
  max_latency_ns: 5_000_000,
  weight: 100,
};

test("a policy that is written as it is stays as it is", () => {
  expect(changeOf(figuresOf(policy))).toEqual({
    level: 2,
    min_iops: 20_000,
    min_bandwidth: 0,
    max_latency_ns: 5_000_000,
    max_iops: 0,
    max_bandwidth: 0,
    weight: 100,
  });
});

test("figures that are none are not asked for", () => {
  expect(changeOf(NEW)).toBeDefined();
  expect(changeOf({ ...NEW, minIops: "many" })).toBeUndefined();
  expect(changeOf({ ...NEW, maxBandwidth: "200M" })?.max_bandwidth).toBe(200 * 1024 * 1024);
  expect(changeOf({ ...NEW, maxLatency: "0.5" })?.max_latency_ns).toBe(500_000);
  expect(changeOf({ ...NEW, maxLatency: "-1" })).toBeUndefined();
});

test("a volume has a policy of its own or that of a group", () => {
  expect(choiceOf("policy none")).toEqual({ policy: "none" });
  expect(choiceOf("group accounting")).toEqual({ group: "accounting" });
});

test("policies are told in a line", () => {
  expect(guaranteed(policy)).toBe("20.0k IOPS, 5.00 ms");
  expect(allowed(policy)).toBe("–");
  expect(allowed({ ...policy, max_bandwidth: 1024 * 1024 })).toBe("1 MiB/s");
});

test("a promise that nobody asked for is neither kept nor broken", () => {
  const qos: VolumeQos = {
    policy,
    iops: 0,
    bandwidth: 0,
    operations: 0,
    late: 0,
    held: 0,
    cost_ns: 0,
    windows: 0,
    met: 0,
  };
  expect(met(qos)).toBe("–");
  expect(met({ ...qos, windows: 200, met: 199 })).toBe("99.5 %");
});
