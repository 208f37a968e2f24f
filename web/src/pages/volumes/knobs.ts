// The knobs of a volume as the form has them, and what a form changes of them. Pure.
import type { Volume, VolumeChange } from "../../api/types";
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
}

function text(size: number | null | undefined): string {
  return size ? bytes(size) : "";
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
  };
}

const SIZES = [
  ["quota", "quota"],
  ["reservation", "reservation"],
  ["fastFloor", "fast_floor"],
  ["fastCeiling", "fast_ceiling"],
  ["writeBudget", "write_budget"],
] as const;

/** What is to be changed; nothing when a size cannot be read. */
export function changeOf(before: KnobForm, now: KnobForm): VolumeChange | undefined {
  const change: VolumeChange = {};
  for (const [field, member] of SIZES) {
    if (before[field] === now[field]) continue;
    const size = now[field].trim() === "" ? 0 : parseBytes(now[field]);
    if (size === undefined) return undefined;
    change[member] = size;
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
