// A server's card in words and figures. Pure.
import type { Server } from "../../api/types";

type Pool = Server["pools"][number];
type Load = NonNullable<Pool["load"]>;

export interface Totals {
  used: number;
  capacity: number;
  /** That of the pool that is full first. */
  secondsToFull: number | undefined;
  /** Nothing where that of no pool is known. */
  load: Load | undefined;
}

export function totals(pools: readonly Pool[]): Totals {
  const sum: Totals = { used: 0, capacity: 0, secondsToFull: undefined, load: undefined };
  for (const pool of pools) {
    sum.used += pool.used;
    sum.capacity += pool.capacity;
    const left = pool.seconds_to_full;
    if (left !== undefined && left !== null) sum.secondsToFull = Math.min(sum.secondsToFull ?? left, left);
    if (pool.load) {
      const { reads = 0, writes = 0, read_bytes = 0, write_bytes = 0 }: Partial<Load> = sum.load ?? {};
      sum.load = {
        reads: reads + pool.load.reads,
        writes: writes + pool.load.writes,
        read_bytes: read_bytes + pool.load.read_bytes,
        write_bytes: write_bytes + pool.load.write_bytes,
      };
    }
  }
  return sum;
}

function worst({ alerts, pools }: Server): "bad" | "warn" | "good" {
  const failed = pools.some((pool) => ["failed", "full", "absent"].includes(pool.state));
  if (failed || alerts.some((alert) => alert.severity === "critical")) return "bad";
  return alerts.length > 0 || pools.some((pool) => pool.state !== "online") ? "warn" : "good";
}

export function toneOf(server: Server): "busy" | "bad" | "warn" | "good" {
  if (server.state === "asking") return "busy";
  return server.state === "unreachable" ? "bad" : worst(server);
}

/** How it is, in a word or two. */
export function verdict(server: Server): string {
  if (server.state === "asking") return "asking";
  if (server.state === "unreachable") return "unreachable";
  const { alerts_open: open } = server;
  if (open > 0) return `${open} alert${open === 1 ? "" : "s"}`;
  return worst(server) === "good" ? "no problems" : "check its pools";
}
