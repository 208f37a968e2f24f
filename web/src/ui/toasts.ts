// Messages that appear for a while in a corner of the page: what was done, and what went wrong with nobody to show it.
import { useSyncExternalStore } from "react";

export interface Toast {
  id: number;
  tone: "good" | "bad";
  text: string;
  /** Takes back what was done. */
  undo?: (() => Promise<unknown>) | undefined;
}

/** Most messages at once: the oldest makes room. */
const MOST = 4;
/** How long a message about success is shown, in milliseconds; what went wrong stays until it is closed. */
const SHOWN = 8000;

type Listener = () => void;

/** The messages that are shown, newest last. */
export class Toasts {
  private shown: readonly Toast[] = [];
  private next = 0;
  private readonly listeners = new Set<Listener>();

  subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  all = (): readonly Toast[] => this.shown;

  /** Says that something was done. */
  done(text: string, undo?: () => Promise<unknown>): void {
    const id = this.add({ tone: "good", text, undo });
    setTimeout(() => this.close(id), SHOWN);
  }

  /** Says that something went wrong; the same message is not repeated. */
  failed(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    if (this.shown.some((toast) => toast.tone === "bad" && toast.text === text)) return;
    this.add({ tone: "bad", text });
  }

  close(id: number): void {
    this.set(this.shown.filter((toast) => toast.id !== id));
  }

  private add(toast: Omit<Toast, "id">): number {
    const id = this.next;
    this.next += 1;
    this.set([...this.shown, { ...toast, id }].slice(-MOST));
    return id;
  }

  private set(shown: readonly Toast[]): void {
    this.shown = shown;
    for (const listener of this.listeners) listener();
  }
}

export const toasts = new Toasts();

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(toasts.subscribe, toasts.all);
}

/** Shows errors that no part of the page handles, as those of buttons without a form. */
export function watchErrors(): void {
  window.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    if (event.reason instanceof DOMException && event.reason.name === "AbortError") return;
    toasts.failed(event.reason);
  });
}
