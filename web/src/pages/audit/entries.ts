// Entries of the log of changes as one row a change. Pure.
import type { AuditEntry } from "../../api/types";

/** A change: what was requested, with what became of it. */
export type Change = Pick<
  AuditEntry,
  "number" | "at_s" | "who" | "from" | "operation" | "subject" | "outcome" | "hash"
>;

/** An operation's name in words: `VolumeCreate` is `volume create`. */
export function words(operation: string): string {
  return operation.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}

/** Joins requests with their outcomes; newest first, in the order received. */
export function outcomes(entries: readonly AuditEntry[]): Change[] {
  const ends = new Map<number, AuditEntry>();
  for (const entry of entries) {
    if (entry.of !== undefined && entry.of !== null) ends.set(entry.of, entry);
  }
  return entries
    .filter((entry) => entry.of === undefined || entry.of === null)
    .map((asked) => {
      const end = ends.get(asked.number);
      return { ...asked, who: end?.who ?? asked.who, outcome: end?.outcome ?? "not ended" };
    });
}
