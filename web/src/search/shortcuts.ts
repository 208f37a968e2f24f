// Keyboard shortcuts of the page.
import { useEffect, useState } from "react";
import { go } from "../router";

/** Pages that `g` and a letter go to. */
export const LETTERS: Record<string, string> = {
  o: "",
  v: "volumes",
  d: "drives",
  m: "map",
  q: "qos",
  w: "what-if",
  s: "snapshots",
  x: "exports",
  e: "events",
  j: "jobs",
};

/** Time within which the letter follows `g`, in milliseconds. */
const WAIT = 1500;
const KEY = "convect-single-keys";

export type Pressed = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">;
export type Action = { open: "search" | "help" } | { to: string } | { wait: true } | undefined;

/**
 * What a key does. `isTyping`: a field or a dialog has the focus, `isAfterG`: `g` was pressed just before, `single`: keys
 * without Ctrl are in use.
 */
export function actionOf(
  key: Pressed,
  { isTyping, isAfterG, single }: { isTyping: boolean; isAfterG: boolean; single: boolean },
): Action {
  if ((key.ctrlKey || key.metaKey) && !key.altKey && key.key.toLowerCase() === "k") return { open: "search" };
  if (key.ctrlKey || key.metaKey || key.altKey || isTyping || !single) return undefined;
  if (key.key === "?") return { open: "help" };
  if (key.key === "/") return { open: "search" };
  const place = isAfterG ? LETTERS[key.key] : undefined;
  if (place !== undefined) return { to: place };
  return key.key === "g" ? { wait: true } : undefined;
}

export function usesSingleKeys(): boolean {
  return localStorage.getItem(KEY) !== "off";
}

export function setSingleKeys(use: boolean): void {
  localStorage.setItem(KEY, use ? "on" : "off");
}

/** Watches the keyboard; the answer is what is open, and what opens something else. */
export function useShortcuts(): ["search" | "help" | undefined, (open?: "search" | "help") => void] {
  const [open, setOpen] = useState<"search" | "help">();
  useEffect(() => {
    let g = -WAIT;
    const onKey = (event: KeyboardEvent) => {
      const target = event.target instanceof HTMLElement ? event.target : undefined;
      const isTyping =
        !!target?.closest("input, textarea, select, [contenteditable]") ||
        document.querySelector("dialog[open]") !== null;
      const isAfterG = event.timeStamp - g < WAIT;
      const action = actionOf(event, { isTyping, isAfterG, single: usesSingleKeys() });
      g = action && "wait" in action ? event.timeStamp : -WAIT;
      if (!action || "wait" in action) return;
      event.preventDefault();
      if ("to" in action) go(action.to);
      else setOpen(action.open);
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
  return [open, setOpen];
}
