// The place in the page, which is what follows the # of its address.
import { useSyncExternalStore } from "react";

function subscribe(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

/** The segments of the place: `["volumes", "tank", "vm1"]`. */
export function usePlace(): string[] {
  const hash = useSyncExternalStore(subscribe, () => window.location.hash);
  return segments(hash);
}

export function segments(hash: string): string[] {
  return hash
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

/** The address of a place. */
export function href(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function go(...parts: string[]): void {
  window.location.hash = href(...parts);
}
