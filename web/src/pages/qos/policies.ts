// Policies as people read and write them.
import type { PolicyChange, QosGroup, QosPolicy, QosStatus, VolumeQos } from "../../api/types";
import { bytes, count, milliseconds, parseBytes } from "../../format";

/** Form data of a policy; an empty figure means none. */
export interface Figures {
  level: string;
  minIops: string;
  minBandwidth: string;
  maxLatency: string;
  maxIops: string;
  maxBandwidth: string;
  weight: string;
  reaction: string;
  fastFloor: string;
  ramShare: string;
}

export const NEW: Figures = {
  level: "3",
  minIops: "",
  minBandwidth: "",
  maxLatency: "",
  maxIops: "",
  maxBandwidth: "",
  weight: "100",
  reaction: "normal",
  fastFloor: "",
  ramShare: "",
};

/** The figures of a policy, to be changed. */
export function figuresOf(policy: QosPolicy): Figures {
  const written = (value: number | null | undefined) => (value ? String(value) : "");
  return {
    level: String(policy.level),
    minIops: written(policy.min_iops),
    minBandwidth: written(policy.min_bandwidth),
    maxLatency: policy.max_latency_ns ? String(policy.max_latency_ns / 1e6) : "",
    maxIops: written(policy.max_iops),
    maxBandwidth: written(policy.max_bandwidth),
    weight: String(policy.weight),
    reaction: policy.reaction ?? "normal",
    fastFloor: written(policy.fast_floor),
    ramShare: written(policy.ram_percent),
  };
}

function whole(text: string): number | undefined {
  if (text.trim() === "") return 0;
  return /^\s*\d+\s*$/.test(text) ? Number(text) : undefined;
}

function size(text: string): number | undefined {
  return text.trim() === "" ? 0 : parseBytes(text);
}

function nanoseconds(text: string): number | undefined {
  if (text.trim() === "") return 0;
  return /^\s*\d+(\.\d+)?\s*$/.test(text) ? Math.round(Number(text) * 1e6) : undefined;
}

/** The request to the daemon; undefined for invalid figures. */
export function changeOf(figures: Figures): (PolicyChange & { level: number }) | undefined {
  const level = whole(figures.level);
  const change = {
    min_iops: whole(figures.minIops),
    min_bandwidth: size(figures.minBandwidth),
    max_latency_ns: nanoseconds(figures.maxLatency),
    max_iops: whole(figures.maxIops),
    max_bandwidth: size(figures.maxBandwidth),
    weight: whole(figures.weight),
    reaction: figures.reaction,
    fast_floor: size(figures.fastFloor),
    ram_percent: whole(figures.ramShare),
  };
  if (level === undefined || Object.values(change).includes(undefined)) return undefined;
  return { level, ...change } as PolicyChange & { level: number };
}

/** The choice for a volume: a policy of its own, or a group. */
export function choiceOf(chosen: string): { policy: string } | { group: string } {
  const [kind, name] = chosen.split(" ") as [string, string];
  return kind === "group" ? { group: name } : { policy: name };
}

/** What a volume can be given: nothing, a policy of its own, or that of a group. */
export function choicesOf(policies: QosPolicy[], groups: QosGroup[]): (readonly [string, string])[] {
  return [
    ["policy none", "none"],
    ...policies.map((known) => [`policy ${known.name}`, `${known.name} (${guaranteed(known)})`] as const),
    ...groups.map((known) => [`group ${known.name}`, `that of group ${known.name}`] as const),
  ];
}

/** A policy's guarantees, in one line. */
export function guaranteed(policy: QosPolicy): string {
  const parts = [
    policy.min_iops ? `${count(policy.min_iops)} IOPS` : "",
    policy.min_bandwidth ? `${bytes(policy.min_bandwidth)}/s` : "",
    policy.max_latency_ns ? milliseconds(policy.max_latency_ns / 1e6) : "",
    policy.fast_floor ? `${bytes(policy.fast_floor)} fast` : "",
    policy.ram_percent ? `${policy.ram_percent} % of RAM` : "",
  ];
  return parts.filter((part) => part !== "").join(", ") || "–";
}

/** The most that a policy allows, in a line. */
export function allowed(policy: QosPolicy): string {
  const parts = [
    policy.max_iops ? `${count(policy.max_iops)} IOPS` : "",
    policy.max_bandwidth ? `${bytes(policy.max_bandwidth)}/s` : "",
  ];
  return parts.filter((part) => part !== "").join(", ") || "–";
}

const PLACES: Record<NonNullable<VolumeQos["bottleneck"]>, string> = {
  own_maximum: "own maximum",
  shard_time: "shard time",
  fast_tier: "fast tier",
  slow_tier: "slow tier",
  room: "room on the fast tier",
};

/** Where operations spent most of their time in the last minute, with who was served meanwhile where they were held. */
export function timeGoesTo(qos: VolumeQos): string {
  if (!qos.bottleneck) return "–";
  const rivals = (qos.held_for ?? []).map((rival) => `${rival.name} ${rival.share_percent} %`);
  const whom = qos.bottleneck === "shard_time" && rivals.length > 0 ? `: ${rivals.join(", ")}` : "";
  return `${PLACES[qos.bottleneck]}${whom}`;
}

/** A policy that volumes have. */
export interface Level {
  policy: QosPolicy;
  volumes: number;
  promisedIops: number;
  iops: number;
  windows: number;
  met: number;
}

/** The policies that volumes and groups have, the most important first. */
export function byLevel(status: Pick<QosStatus, "volumes" | "groups">): Level[] {
  const levels = new Map<number, Level>();
  const add = (qos: VolumeQos, volumes: number) => {
    const { policy } = qos;
    const none = { policy, volumes: 0, promisedIops: 0, iops: 0, windows: 0, met: 0 };
    const of = levels.get(policy.id) ?? none;
    levels.set(policy.id, {
      policy,
      volumes: of.volumes + volumes,
      promisedIops: of.promisedIops + (policy.min_iops ?? 0),
      iops: of.iops + qos.iops,
      windows: of.windows + qos.windows,
      met: of.met + qos.met,
    });
  };
  status.volumes.forEach((volume) => add(volume.qos, 1));
  status.groups.forEach((group) => group.qos && add(group.qos, group.volumes.length));
  return [...levels.values()].sort(
    (one, other) => one.policy.level - other.policy.level || one.policy.id - other.policy.id,
  );
}

/** The share of the time with demand in which a volume's guarantee was met. */
export function met(qos: Pick<VolumeQos, "windows" | "met">): string {
  return qos.windows === 0 ? "–" : `${((100 * qos.met) / qos.windows).toFixed(1)} %`;
}
