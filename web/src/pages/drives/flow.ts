// Flow between hosts and the tiers of a pool, and its layout. Pure.
import type { Counters, MoveCount } from "../../api/types";

/** A sample of counters, with its time in milliseconds. */
export interface Sample {
  at: number;
  counters: Counters;
  moves: MoveCount[];
}

export type From = "host" | "ram" | "fast" | "slow" | "any";
export type To = From | "nowhere" | "dropped";

/** Bytes a second on one way, with what they were for, the most first. */
export interface Flow {
  from: From;
  to: To;
  rate: number;
  reasons: { about: string; rate: number }[];
}

const BLOCK = 4096;

function grown(before: number, after: number): number {
  // A pool that was opened again counts from 0 on.
  return after >= before ? after - before : after;
}

/** Flow between two samples, without empty paths. */
export function flows(before: Sample, after: Sample): Flow[] {
  const seconds = (after.at - before.at) / 1000;
  if (seconds <= 0) return [];
  const found = new Map<string, Flow>();
  const add = (from: From, to: To, about: string, bytes: number) => {
    if (bytes <= 0) return;
    const key = `${from} ${to}`;
    const flow = found.get(key) ?? { from, to, rate: 0, reasons: [] };
    flow.rate += bytes / seconds;
    flow.reasons.push({ about, rate: bytes / seconds });
    found.set(key, flow);
  };
  for (const [tier, name] of [
    ["ram", "blocks_ram"],
    ["fast", "blocks_fast"],
    ["slow", "blocks_slow"],
  ] as const) {
    const blocks = grown(before.counters[name], after.counters[name]);
    add(tier, "host", "hosts read it", blocks * BLOCK);
  }
  const key = (move: MoveCount) => `${move.from} ${move.to} ${move.dropped} ${move.reason}`;
  const known = new Map(before.moves.map((move) => [key(move), move.bytes]));
  for (const move of after.moves) {
    const bytes = grown(known.get(key(move)) ?? 0, move.bytes);
    add(move.from as From, move.dropped ? "dropped" : (move.to as To), move.about, bytes);
  }
  for (const flow of found.values()) flow.reasons.sort((one, other) => other.rate - one.rate);
  return [...found.values()].sort((one, other) => other.rate - one.rate);
}

/** The samples of a window that ends with the last one: its first and its last, or nothing. */
export function windowOf(samples: readonly Sample[], seconds: number): [Sample, Sample] | undefined {
  const last = samples[samples.length - 1];
  const first = last && samples.find((sample) => sample.at >= last.at - seconds * 1000 - 500);
  return last && first && first !== last ? [first, last] : undefined;
}

/** A source or destination, as a bar. */
export interface Node<N> {
  name: N;
  rate: number;
  y: number;
  tall: number;
}

/** A way as a band: where it begins at the left and ends at the right, and how thick it is. */
export interface Band {
  flow: Flow;
  left: number;
  right: number;
  thick: number;
}

export interface Picture {
  tall: number;
  sources: Node<From>[];
  targets: Node<To>[];
  bands: Band[];
}

const SOURCES: readonly From[] = ["host", "ram", "fast", "slow", "any"];
const TARGETS: readonly To[] = ["host", "ram", "fast", "slow", "any", "dropped"];
/** Heights: of all bands together, of the thinnest, and between bars. */
const BANDS = 200;
const LEAST = 2;
const GAP = 26;

/**
 * Where bars and bands lie: what something comes from at the left, what it goes to at the right, each in its order, so
 * that a tier that gives and takes is at both. What went nowhere is not drawn.
 */
export function layout(all: readonly Flow[]): Picture {
  const drawn = all.filter((flow) => flow.to !== "nowhere");
  const sum = drawn.reduce((rate, flow) => rate + flow.rate, 0);
  const thick = new Map(drawn.map((flow) => [flow, Math.max((flow.rate / sum) * BANDS, LEAST)]));
  const bands = new Map<Flow, Band>(
    drawn.map((flow) => [flow, { flow, left: 0, right: 0, thick: thick.get(flow)! }]),
  );
  function side<N extends string>(
    names: readonly N[],
    mine: (flow: Flow) => string,
    other: (flow: Flow) => number,
    end: "left" | "right",
  ): [Node<N>[], number] {
    const nodes: Node<N>[] = [];
    let y = GAP;
    for (const name of names) {
      const own = drawn.filter((flow) => mine(flow) === name).sort((a, b) => other(a) - other(b));
      if (own.length === 0) continue;
      const begin = y;
      let rate = 0;
      for (const flow of own) {
        const band = bands.get(flow)!;
        band[end] = y + band.thick / 2;
        y += band.thick;
        rate += flow.rate;
      }
      nodes.push({ name, rate, y: begin, tall: y - begin });
      y += GAP;
    }
    return [nodes, y];
  }
  const [sources, leftEnd] = side(
    SOURCES,
    (flow) => flow.from,
    (flow) => TARGETS.indexOf(flow.to),
    "left",
  );
  const [targets, rightEnd] = side(
    TARGETS,
    (flow) => flow.to,
    (flow) => SOURCES.indexOf(flow.from),
    "right",
  );
  return { tall: Math.max(leftEnd, rightEnd) - GAP / 2, sources, targets, bands: [...bands.values()] };
}
