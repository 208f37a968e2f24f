// The settings of a volume as the form has them, and what a form changes of them. Pure.
import type { Targets, Volume, VolumeChange } from "../../api/types";
import { bytes, parseBytes } from "../../format";

export interface KnobForm {
  quota: string;
  reservation: string;
  promotion: boolean;
  reaction: "eager" | "normal" | "thrifty";
  fastFloor: string;
  fastCeiling: string;
  writeBudget: string;
  bypass: string;
  targetIops: string;
  targetBandwidth: string;
  /** In milliseconds. */
  targetLatency: string;
}

function text(size: number | null | undefined): string {
  return size ? bytes(size) : "";
}

function number(value: number | null | undefined): string {
  return value ? String(value) : "";
}

function inMilliseconds(ns: number | null | undefined): number {
  return (ns ?? 0) / 1e6;
}

/** Performance targets of a volume, in words; empty without any. */
export function expectedOf(targets: Targets | null | undefined): string {
  if (!targets) return "";
  const { iops, bandwidth, latency_ns: latency } = targets;
  const parts = [
    iops && `${iops} IOPS`,
    bandwidth && `${bytes(bandwidth)}/s`,
    latency && `p99 within ${inMilliseconds(latency)} ms`,
  ];
  return parts.filter(Boolean).join(", ");
}

/** A number that is written, times a factor, as a whole one; 0 for nothing written. Nothing when it is none. */
function whole(text: string, factor: number): number | undefined {
  const value = text.trim() === "" ? 0 : Number(text);
  return Number.isFinite(value) && value >= 0 ? Math.round(value * factor) : undefined;
}

export function knobsOf(volume: Volume): KnobForm {
  const placement = volume.placement;
  return {
    quota: text(volume.quota),
    reservation: text(volume.reservation),
    promotion: placement?.promotion ?? true,
    reaction: placement?.reaction ?? "normal",
    fastFloor: text(placement?.fast_floor),
    fastCeiling: text(placement?.fast_ceiling),
    writeBudget: text(placement?.write_budget?.daily),
    bypass: (placement?.bypass?.initiators ?? []).join("\n"),
    targetIops: number(volume.targets?.iops),
    targetBandwidth: text(volume.targets?.bandwidth),
    targetLatency: number(inMilliseconds(volume.targets?.latency_ns)),
  };
}

const SIZES = [
  ["quota", "quota"],
  ["reservation", "reservation"],
  ["fastFloor", "fast_floor"],
  ["fastCeiling", "fast_ceiling"],
  ["writeBudget", "write_budget"],
  ["targetBandwidth", "target_bandwidth"],
] as const;
const NUMBERS = [
  ["targetIops", "target_iops", 1],
  ["targetLatency", "target_latency_ns", 1e6],
] as const;

/** The changes; undefined if a size or a number is invalid. */
export function changeOf(before: KnobForm, now: KnobForm): VolumeChange | undefined {
  const change: VolumeChange = {};
  for (const [field, member] of SIZES) {
    if (before[field] === now[field]) continue;
    const size = now[field].trim() === "" ? 0 : parseBytes(now[field]);
    if (size === undefined) return undefined;
    change[member] = size;
  }
  for (const [field, member, factor] of NUMBERS) {
    if (before[field] === now[field]) continue;
    const value = whole(now[field], factor);
    if (value === undefined) return undefined;
    change[member] = value;
  }
  if (before.promotion !== now.promotion) change.promotion = now.promotion;
  if (before.reaction !== now.reaction) change.reaction = now.reaction;
  if (before.bypass !== now.bypass) {
    change.bypass = now.bypass
      .split("\n")
      .map((name) => name.trim())
      .filter((name) => name !== "");
  }
  return change;
}
