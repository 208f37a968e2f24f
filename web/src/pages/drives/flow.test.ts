import { expect, test } from "vitest";
import type { Counters, MoveCount } from "../../api/types";
import { flows, layout, windowOf, type Sample } from "./flow";

const NONE = { blocks_ram: 0, blocks_fast: 0, blocks_slow: 0 } as Counters;

function move(from: string, to: string, reason: string, bytes: number, dropped = false): MoveCount {
  return { from, to, reason, about: `about ${reason}`, dropped, moves: 1, bytes };
}

function sample(at: number, counters: Partial<Counters>, moves: MoveCount[]): Sample {
  return { at, counters: { ...NONE, ...counters }, moves };
}

test("ways are bytes a second, with their reasons, and reads count from where they came", () => {
  const before = sample(1000, { blocks_ram: 100 }, [move("host", "fast", "written", 1000)]);
  const after = sample(3000, { blocks_ram: 102, blocks_slow: 1 }, [
    move("host", "fast", "written", 5000),
    move("fast", "slow", "sank", 800),
    move("fast", "slow", "packed", 1200),
    move("fast", "slow", "least", 600, true),
    move("slow", "slow", "spared", 0),
  ]);
  expect(flows(before, after).map(({ from, to, rate }) => [from, to, rate])).toEqual([
    ["ram", "host", 4096],
    ["slow", "host", 2048],
    ["host", "fast", 2000],
    ["fast", "slow", 1000],
    ["fast", "dropped", 300],
  ]);
  const sinking = flows(before, after).find((flow) => flow.from === "fast" && flow.to === "slow")!;
  expect(sinking.reasons).toEqual([
    { about: "about packed", rate: 600 },
    { about: "about sank", rate: 400 },
  ]);
  expect(flows(after, after)).toEqual([]);
});

test("a pool that was opened anew counts from nothing on", () => {
  const [before, after] = [sample(0, { blocks_fast: 500 }, []), sample(1000, { blocks_fast: 2 }, [])];
  expect(flows(before, after)).toMatchObject([{ from: "fast", to: "host", rate: 8192 }]);
});

test("a window ends with the last sample", () => {
  const samples = [0, 2000, 4000, 6000].map((at) => sample(at, {}, []));
  expect(windowOf(samples, 4)?.map(({ at }) => at)).toEqual([2000, 6000]);
  expect(windowOf(samples, 600)?.map(({ at }) => at)).toEqual([0, 6000]);
  expect(windowOf(samples.slice(0, 1), 4)).toBeUndefined();
  expect(windowOf([], 4)).toBeUndefined();
});

test("bands fill their bars without a gap, at both ends", () => {
  const flow = (from: "host" | "fast", to: "fast" | "slow" | "nowhere" | "host", rate: number) => ({
    from,
    to,
    rate,
    reasons: [],
  });
  const { sources, targets, bands, tall } = layout([
    flow("host", "fast", 300),
    flow("fast", "slow", 75),
    flow("fast", "host", 25),
    flow("host", "nowhere", 9),
  ]);
  expect(sources.map(({ name, rate, tall: height }) => [name, rate, height])).toEqual([
    ["host", 300, 150],
    ["fast", 100, 50],
  ]);
  expect(targets.map(({ name }) => name)).toEqual(["host", "fast", "slow"]);
  for (const node of targets) {
    const own = bands.filter(({ flow: { to } }) => to === node.name);
    expect(own.reduce((sum, { thick }) => sum + thick, 0)).toBeCloseTo(node.tall);
    for (const { right, thick } of own) {
      expect(right - thick / 2).toBeGreaterThanOrEqual(node.y - 1e-9);
      expect(right + thick / 2).toBeLessThanOrEqual(node.y + node.tall + 1e-9);
    }
  }
  const fast = bands.filter(({ flow: { from } }) => from === "fast").sort((a, b) => a.left - b.left);
  expect(fast[0]!.left + fast[0]!.thick / 2).toBeCloseTo(fast[1]!.left - fast[1]!.thick / 2);
  expect(tall).toBeGreaterThan(200);
  expect(layout([])).toMatchObject({ sources: [], targets: [], bands: [] });
});
