// Loads computed from counters. Pure.
import type { Counters, LiveState } from "../api/types";

/** A load between two looks. Rates are a second, times milliseconds, shares 0 to 1. */
export interface Load {
  readIops: number;
  writeIops: number;
  readBytes: number;
  writeBytes: number;
  readMs: number;
  writeMs: number;
}

export interface PoolLoad extends Load {
  at: number;
  ram: number;
  fast: number;
  slow: number;
}

type Did = readonly [number, number, number, number, number, number];

function ratio(part: number, whole: number): number {
  return whole > 0 ? part / whole : 0;
}

/** Difference between two readings. Counters that decreased (the pool was opened again) count from zero. */
export function loadBetween(before: Did, after: Did, seconds: number): Load {
  const went = after.map((value, index) => {
    const from = before[index] ?? 0;
    return value >= from ? value - from : value;
  });
  const [reads = 0, writes = 0, readBytes = 0, writeBytes = 0, readNs = 0, writeNs = 0] = went;
  return {
    readIops: ratio(reads, seconds),
    writeIops: ratio(writes, seconds),
    readBytes: ratio(readBytes, seconds),
    writeBytes: ratio(writeBytes, seconds),
    readMs: ratio(readNs / 1e6, reads),
    writeMs: ratio(writeNs / 1e6, writes),
  };
}

function did(counters: Counters): Did {
  const { reads, writes, read_bytes, write_bytes, read_ns, write_ns } = counters;
  return [reads, writes, read_bytes, write_bytes, read_ns, write_ns];
}

export const IDLE: Load = {
  readIops: 0,
  writeIops: 0,
  readBytes: 0,
  writeBytes: 0,
  readMs: 0,
  writeMs: 0,
};

export interface PoolLive {
  counters: Counters;
  load: PoolLoad;
}

export interface VolumeLive {
  did: Did;
  load: Load;
}

/** State from the stream. */
export interface Live {
  at: number;
  changes: number;
  pools: ReadonlyMap<string, PoolLive>;
  volumes: ReadonlyMap<string, VolumeLive>;
  jobs: NonNullable<LiveState["jobs"]>;
}

export const NOTHING: Live = { at: 0, changes: 0, pools: new Map(), volumes: new Map(), jobs: [] };

function poolLoad(at: number, before: Counters, after: Counters, seconds: number): PoolLoad {
  const part = (name: "blocks_ram" | "blocks_fast" | "blocks_slow") =>
    Math.max(after[name] - before[name], 0);
  const [ram, fast, slow] = [part("blocks_ram"), part("blocks_fast"), part("blocks_slow")];
  const all = ram + fast + slow;
  return {
    ...loadBetween(did(before), did(after), seconds),
    at,
    ram: ratio(ram, all),
    fast: ratio(fast, all),
    slow: ratio(slow, all),
  };
}

/** State after one more event. Objects that it does not name were idle since the previous one. */
export function advance(live: Live, event: LiveState): Live {
  const seconds = (event.at_ms - live.at) / 1000;
  const first = live.at === 0 || seconds <= 0;
  const told = new Map(event.pools.map((pool) => [pool.name, pool]));
  const pools = new Map<string, PoolLive>();
  const names = event.whole ? [...told.keys()] : [...live.pools.keys()];
  for (const name of names) {
    const known = live.pools.get(name);
    const counters = told.get(name)?.counters ?? known?.counters;
    if (!counters) continue;
    const before = first || !known ? counters : known.counters;
    const load = poolLoad(event.at_ms, before, counters, Math.max(seconds, 1));
    pools.set(name, { counters, load });
  }
  const volumes = new Map<string, VolumeLive>();
  if (!event.whole) {
    for (const [key, known] of live.volumes) volumes.set(key, { did: known.did, load: IDLE });
  }
  for (const volume of event.volumes) {
    const key = `${volume.pool}/${volume.name}`;
    const known = live.volumes.get(key);
    const now = volume.did as unknown as Did;
    const load = known && !first ? loadBetween(known.did, now, seconds) : IDLE;
    volumes.set(key, { did: now, load });
  }
  return { at: event.at_ms, changes: event.changes, pools, volumes, jobs: event.jobs ?? live.jobs };
}
