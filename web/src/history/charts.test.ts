import { expect, test } from "vitest";
import type { History } from "../api/types";
import { chartsOf, wordsOf } from "./charts";

function history(object: string, values: Record<string, (number | null)[]>): History {
  const series = Object.entries(values).map(([name, known]) => ({ name, unit: "", values: known }));
  return { object, from_s: 0, step_s: 1, series };
}

const titles = (of: History) => chartsOf(of).map((chart) => chart.title);

test("each kind of object has charts of its operations and its own", () => {
  const all = ["IOPS", "Throughput", "Read latency", "Write latency"];
  expect(titles(history("drive/tank/file:/a", {}))).toEqual([...all, "Queue depth"]);
  expect(titles(history("volume/tank/v", { fast_share: [1], promoted_bytes: [0] })).slice(5)).toEqual([
    "Read from",
    "Promotion and demotion",
  ]);
  expect(titles(history("tier/tank/fast", { share: [1], moved_in_bytes: [1], used: [2] })).slice(5)).toEqual([
    "Share of all reads",
    "Data moved",
    "Used",
  ]);
  expect(titles(history("policy/tank/gold", { met: [null, 0.5], held: [1] })).slice(5)).toEqual([
    "Guarantee met",
    "Held and late operations per second",
  ]);
  expect(titles(history("export/tank/e", { sessions: [2] })).at(-1)).toBe("Sessions");
});

test("what is not known of an object has no chart of its own", () => {
  // Nothing is known of what moves to RAM.
  const ram = history("tier/tank/ram", { moved_in_bytes: [null], moved_out_bytes: [null], used: [1] });
  expect(titles(ram).slice(5)).toEqual(["Used"]);
});

test("a chart says the most of each line", () => {
  const of = history("volume/tank/v", { reads: [1, null, 30], read_latency_p99: [0.002] });
  const [operations, , reads] = chartsOf(of);
  expect(wordsOf(operations!, of)).toBe("reads up to 30, writes up to –");
  expect(wordsOf(reads!, of)).toContain("p99 up to 2");
});
