import { expect, test } from "vitest";
import type { QosPolicy, VolumeQos } from "../../api/types";
import {
  allowed,
  byLevel,
  changeOf,
  choiceOf,
  figuresOf,
  guaranteed,
  met,
  NEW,
  timeGoesTo,
} from "./policies";

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
    reaction: "normal",
    fast_floor: 0,
    ram_percent: 0,
  });
});

test("figures that are none are not asked for", () => {
  expect(changeOf(NEW)).toBeDefined();
  expect(changeOf({ ...NEW, minIops: "many" })).toBeUndefined();
  expect(changeOf({ ...NEW, maxBandwidth: "200M" })?.max_bandwidth).toBe(200 * 1024 * 1024);
  expect(changeOf({ ...NEW, maxLatency: "0.5" })?.max_latency_ns).toBe(500_000);
  expect(changeOf({ ...NEW, maxLatency: "-1" })).toBeUndefined();
  expect(changeOf({ ...NEW, fastFloor: "1G", ramShare: "20", reaction: "eager" })).toMatchObject({
    fast_floor: 1024 ** 3,
    ram_percent: 20,
    reaction: "eager",
  });
});

test("a volume has a policy of its own or that of a group", () => {
  expect(choiceOf("policy none")).toEqual({ policy: "none" });
  expect(choiceOf("group accounting")).toEqual({ group: "accounting" });
});

test("policies are told in a line", () => {
  expect(guaranteed(policy)).toBe("20.0k IOPS, 5.00 ms");
  const hints = { ...policy, fast_floor: 1024 * 1024, ram_percent: 20 };
  expect(guaranteed(hints)).toBe("20.0k IOPS, 5.00 ms, 1 MiB fast, 20 % of RAM");
  expect(allowed(policy)).toBe("–");
  expect(allowed({ ...policy, max_bandwidth: 1024 * 1024 })).toBe("1 MiB/s");
});

const qos: VolumeQos = {
  policy,
  iops: 0,
  bandwidth: 0,
  operations: 0,
  late: 0,
  held: 0,
  held_ns: 0,
  own_ns: 0,
  waited_ns: 0,
  took_ns: 0,
  cost_ns: 0,
  windows: 0,
  met: 0,
};

test("time goes to one place, and at the gate to whom was served", () => {
  expect(timeGoesTo(qos)).toBe("–");
  expect(timeGoesTo({ ...qos, bottleneck: "slow_tier" })).toBe("slow tier");
  const held_for = [{ name: "scan", share_percent: 63 }];
  expect(timeGoesTo({ ...qos, bottleneck: "shard_time", held_for })).toBe("shard time: scan 63 %");
  expect(timeGoesTo({ ...qos, bottleneck: "own_maximum", held_for })).toBe("own maximum");
});

test("policies in use are by level, with what is promised to volumes and groups", () => {
  const first: QosPolicy = { ...policy, id: 1, name: "mission-critical", level: 1 };
  const volume = { volume: "db", qos: { ...qos, iops: 5, windows: 10, met: 9 } };
  const group = {
    name: "vdi",
    volumes: ["a", "b"],
    qos: { ...qos, group: "vdi", iops: 7, windows: 10, met: 10 },
  };
  const levels = byLevel({
    volumes: [volume, { volume: "log", qos: { ...qos, policy: first } }],
    groups: [group],
  });
  expect(levels.map((level) => [level.policy.name, level.volumes, level.promisedIops, level.iops])).toEqual([
    ["mission-critical", 1, 20_000, 0],
    ["gold", 3, 40_000, 12],
  ]);
  expect(met(levels[1]!)).toBe("95.0 %");
});

test("a promise that nobody asked for is neither kept nor broken", () => {
  expect(met(qos)).toBe("–");
  expect(met({ ...qos, windows: 200, met: 199 })).toBe("99.5 %");
});
