// The time that is examined, and causes in words.
import type { Why } from "../../api/types";
import { milliseconds } from "../../format";

/** Choices of the examined time. */
export const WHENS = [
  ["now", "The last 5 minutes"],
  ["hour", "The last hour"],
  ["day", "The last day"],
  ["at", "Around a time"],
] as const;

export type When = (typeof WHENS)[number][0];

const LENGTHS = { hour: 3600, day: 86_400 } as const;
/** Seconds before and after a time that are examined. */
const AROUND = 300;

/** Start and end in seconds since 1970: the daemon's default where one is missing. */
export interface Examined {
  from?: number;
  to?: number;
}

/**
 * The examined time in seconds since 1970, for a choice at `now` (milliseconds since 1970). `at` is a local date and
 * time as of an input field. Nothing if it is missing, or has not come yet.
 */
export function examined(when: When, at: string, now: number): Examined | undefined {
  const end = Math.floor(now / 1000);
  if (when === "now") return {};
  if (when !== "at") return { from: end - LENGTHS[when] };
  const middle = Math.floor(new Date(at).getTime() / 1000);
  const from = middle - AROUND;
  if (Number.isNaN(middle) || from < 0 || from >= end) return undefined;
  return { from, to: Math.min(middle + AROUND, end) };
}

/** How much a cause explains; empty where that is not known. */
export function shareOf(of: Why["findings"][number]): string {
  if (typeof of.share_percent !== "number" || typeof of.explained_us !== "number") return "";
  return `: ${Math.round(of.share_percent)} %, ${milliseconds(of.explained_us / 1000)} an I/O`;
}
