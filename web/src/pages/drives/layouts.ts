// Layouts by the names that the page has for them, and drives as they are typed.
import { parseBytes } from "../../format";
import type { Layout } from "../../api/types";

export type LayoutName = "mirror" | "concat" | "stripe";

export const LAYOUTS: readonly (readonly [LayoutName, string])[] = [
  ["mirror", "mirror: each block on all drives"],
  ["concat", "concat: one drive after the other"],
  ["stripe", "stripe: round robin"],
];

/** Default chunk of a stripe. */
export const CHUNK = "64 KiB";

/** A layout with its chunk as it is typed, which counts for a stripe alone; nothing when it is no size. */
export function layout(name: LayoutName, chunk: string): Layout | undefined {
  if (name !== "stripe") return { kind: name };
  const size = parseBytes(chunk);
  return size ? { kind: "stripe", chunk: size } : undefined;
}

/** Levels in per cent as they are typed; nothing when they cannot be. */
export function levels(text: string): number[] | undefined {
  const numbers = text.split(",").map((part) => part.trim().replace(/\s*%$/, ""));
  if (numbers.join("") === "") return [];
  const found = numbers.map(Number);
  const good = found.every((level, at) => {
    const before = at === 0 ? 9 : found[at - 1]!;
    return Number.isInteger(level) && level > before && level <= 100;
  });
  return good && found.length <= 8 ? found : undefined;
}

/** The lines that say something; a bare path is a file or device. */
export function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => (line.startsWith("/") ? `file:${line}` : line));
}
