// The one stream of live data that the page has open, and what is known from it.
import { useSyncExternalStore } from "react";
import type { LiveMap, LiveState } from "../api/types";
import { NOTHING, advance, type Live } from "./load";

/** Maps that are wanted beside the state. */
export interface MapWish {
  maps: string[];
  cells: number;
  start?: number;
  length?: number;
}

type Listener = () => void;

/** Time until a stream that was refused is requested again, in milliseconds. */
const RETRY = 5000;

class Stream {
  private source: EventSource | undefined;
  private live: Live = NOTHING;
  private open = false;
  private wish: MapWish | undefined;
  private readonly listeners = new Set<Listener>();
  private onMap: (map: LiveMap) => void = () => undefined;

  subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  state = (): Live => this.live;
  connected = (): boolean => this.open;

  /** Opens the stream. It opens again by itself when the daemon was away. */
  start(): void {
    this.connect();
  }

  stop(): void {
    this.source?.close();
    this.source = undefined;
    this.live = NOTHING;
    this.setOpen(false);
  }

  /** Asks for maps from now on, or for none. */
  want(wish: MapWish | undefined, onMap: (map: LiveMap) => void): void {
    this.onMap = onMap;
    this.wish = wish;
    if (this.source) this.connect();
  }

  private address(): string {
    const query = new URLSearchParams();
    if (this.wish && this.wish.maps.length > 0) {
      query.set("maps", this.wish.maps.join(","));
      query.set("cells", String(this.wish.cells));
      if (this.wish.start !== undefined) query.set("start", String(this.wish.start));
      if (this.wish.length !== undefined) query.set("length", String(this.wish.length));
    }
    return query.size > 0 ? `/v1/live?${query}` : "/v1/live";
  }

  private connect(): void {
    this.source?.close();
    const source = new EventSource(this.address());
    this.source = source;
    source.addEventListener("open", () => this.setOpen(true));
    source.addEventListener("error", () => {
      this.setOpen(false);
      // A stream that was refused because of too many viewers is not retried automatically.
      if (source.readyState === EventSource.CLOSED) {
        setTimeout(() => this.source === source && this.connect(), RETRY);
      }
    });
    source.addEventListener("state", (message) => {
      this.live = advance(this.live, JSON.parse(String(message.data)) as LiveState);
      this.tell();
    });
    source.addEventListener("map", (message) => this.onMap(JSON.parse(String(message.data)) as LiveMap));
  }

  private setOpen(open: boolean): void {
    this.open = open;
    this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

export const stream = new Stream();

export function useLive(): Live {
  return useSyncExternalStore(stream.subscribe, stream.state);
}

/** A part of what is known, which is examined again with each event. */
export function useLiveValue<T>(pick: (live: Live) => T): T {
  return useSyncExternalStore(stream.subscribe, () => pick(stream.state()));
}

export function useConnected(): boolean {
  return useSyncExternalStore(stream.subscribe, stream.connected);
}
