// Search over everything that has a name. Pure.

export type Kind = "page" | "pool" | "volume" | "snapshot" | "export" | "drive";

export interface Entry {
  kind: Kind;
  name: string;
  /** The place in the page. */
  to: string[];
}

/** Most results: what is beyond is found by another word. */
const MOST = 40;

/** How well an entry matches, lower is better; nothing if it does not: each word has to be in its kind or its name. */
function rank(entry: Entry, words: readonly string[]): number | undefined {
  const name = entry.name.toLowerCase();
  const text = `${entry.kind} ${name}`;
  if (!words.every((word) => text.includes(word))) return undefined;
  const last = words.at(-1) ?? "";
  if (name === last) return 0;
  if (name.startsWith(last)) return 1;
  // A part of a name: `db` of `tank/db-main`.
  return /[/@.\-_ ]/.test(name[name.indexOf(last) - 1] ?? "") ? 2 : 3;
}

/** The entries that match a text, best first; in their own order where they match as well. */
export function found(entries: readonly Entry[], text: string): Entry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return entries
    .map((entry) => ({ entry, rank: rank(entry, words) }))
    .filter((known): known is { entry: Entry; rank: number } => known.rank !== undefined)
    .sort((a, b) => a.rank - b.rank)
    .slice(0, MOST)
    .map(({ entry }) => entry);
}
