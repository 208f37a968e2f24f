// Colours of the page's style for what is drawn on a canvas, and when they change.
import { useSyncExternalStore } from "react";

/** How a line, an area or a bar is drawn; the last three are the tiers'. */
export type Tone = "accent" | "second" | "warn" | "ram" | "fast" | "slow";

/** A colour of the page's style as it is now: a canvas does not resolve custom properties. */
export function colourOf(element: HTMLElement, name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function subscribe(changed: () => void): () => void {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = new MutationObserver(changed);
  system.addEventListener("change", changed);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    system.removeEventListener("change", changed);
    chosen.disconnect();
  };
}

/** Becomes another value whenever the theme changes, by the user or by the system. */
export function useThemeKey(): string {
  return useSyncExternalStore(subscribe, () => {
    const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    return document.documentElement.dataset["theme"] ?? system;
  });
}
