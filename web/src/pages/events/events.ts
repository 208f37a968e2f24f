// Events and alerts in words. Pure.
import type { Alert, HappenedEvent } from "../../api/types";

/** Whether a code and what it is about matter as much as a colour says. */
export function tone(severity: Alert["severity"]): "bad" | "warn" | "" {
  return severity === "critical" ? "bad" : severity === "warning" ? "warn" : "";
}

/** A code as people read it. */
export function words(code: string): string {
  return code.replaceAll("_", " ");
}

/** The object of an event, with its pool if that differs. */
export function about({ pool, name }: Alert["subject"]): string {
  return pool === undefined || pool === null || pool === name ? name : `${pool}: ${name}`;
}

/** Whether an event has all the words that are looked for. */
export function found(event: HappenedEvent, find: string): boolean {
  const text = `${words(event.code)} ${event.state} ${about(event.subject)} ${event.message}`.toLowerCase();
  return find
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
