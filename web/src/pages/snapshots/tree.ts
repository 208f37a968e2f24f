// Snapshots beneath their volumes, and clones beneath what they were made from, as rows. Pure.
import type { Snapshot } from "../../api/types";

export interface VolumeRow {
  kind: "volume";
  key: string;
  name: string;
  depth: number;
  snapshots: number;
  stored: number;
}

export interface SnapshotRow {
  kind: "snapshot";
  key: string;
  depth: number;
  snapshot: Snapshot;
}

export type Row = VolumeRow | SnapshotRow;

/** Deeper than this clones of clones are not moved to the right any longer. */
const DEPTH_MAX = 6;

export function flat(snapshots: readonly Snapshot[]): Row[] {
  return snapshots.map((snapshot) => ({
    kind: "snapshot",
    key: `${snapshot.pool}/${snapshot.volume}@${snapshot.name}`,
    depth: 0,
    snapshot,
  }));
}

/** Volumes in the order of their names, each with its snapshots, the oldest first, and their clones beneath. */
export function tree(snapshots: readonly Snapshot[], closed: ReadonlySet<string>): Row[] {
  const byVolume = new Map<string, Snapshot[]>();
  const parent = new Map<string, string>();
  for (const snapshot of snapshots) {
    const key = `${snapshot.pool}/${snapshot.volume}`;
    const known = byVolume.get(key);
    if (known) known.push(snapshot);
    else byVolume.set(key, [snapshot]);
    for (const clone of snapshot.clones) parent.set(`${snapshot.pool}/${clone}`, key);
  }
  const rows: Row[] = [];
  const shown = new Set<string>();
  const add = (key: string, depth: number) => {
    if (shown.has(key)) return;
    shown.add(key);
    const own = byVolume.get(key) ?? [];
    const stored = own.reduce((sum, snapshot) => sum + snapshot.stored, 0);
    rows.push({ kind: "volume", key, name: key, depth, snapshots: own.length, stored });
    if (closed.has(key)) {
      for (const snapshot of own) for (const clone of snapshot.clones) hide(`${snapshot.pool}/${clone}`);
      return;
    }
    for (const snapshot of own) {
      rows.push({ kind: "snapshot", key: `${key}@${snapshot.name}`, depth: depth + 1, snapshot });
      for (const clone of snapshot.clones) add(`${snapshot.pool}/${clone}`, Math.min(depth + 2, DEPTH_MAX));
    }
  };
  const hide = (key: string) => {
    if (shown.has(key)) return;
    shown.add(key);
    for (const snapshot of byVolume.get(key) ?? []) {
      for (const clone of snapshot.clones) hide(`${snapshot.pool}/${clone}`);
    }
  };
  const names = [...byVolume.keys()].sort();
  for (const key of names) if (!parent.has(key)) add(key, 0);
  // The rest has parents that are not shown.
  for (const key of names) add(key, 0);
  return rows;
}
