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

/** The lines that say something; a bare path is a file or device. */
export function lines(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => (line.startsWith("/") ? `file:${line}` : line));
}
