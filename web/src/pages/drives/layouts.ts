// Layouts by the names that the page has for them, and drives as they are typed.
import type { Layout } from "../../api/types";

export type LayoutName = "mirror" | "concat" | "stripe";

export const LAYOUTS: readonly (readonly [LayoutName, string])[] = [
  ["mirror", "mirror: each block on all drives"],
  ["concat", "concat: one drive after the other"],
  ["stripe", "stripe: round robin, 64 KiB each"],
];

export function layout(name: LayoutName): Layout {
  return name === "stripe" ? { kind: "stripe", chunk: 65_536 } : { kind: name };
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
