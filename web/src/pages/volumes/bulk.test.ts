import { expect, test } from "vitest";
import type { Volume } from "../../api/types";
import { byPool, failuresOf, forAll, riskOf } from "./bulk";
import { columnsOf, hiddenFrom } from "./columns";
import { orderAfter, sorted } from "../../ui/Table";

function volume(name: string, more: Partial<Volume> = {}): Volume {
  const base = {
    id: 1,
    pool: "tank",
    size: 1,
    mapped: 0,
    lba_size: 512,
    exports: [],
    serial: "",
    thick: false,
  };
  return { ...base, state: "online", name, ...more };
}

test("failures do not stop the other volumes, and few run at once", async () => {
  let [running, most] = [0, 0];
  const items = Array.from({ length: 20 }, (_, at) => `v${at}`);
  const outcome = await forAll(items, String, async (item) => {
    running += 1;
    most = Math.max(most, running);
    await Promise.resolve();
    running -= 1;
    if (item.endsWith("5")) throw new Error("busy");
  });
  expect(outcome.done).toBe(18);
  expect(outcome.failures).toEqual(["v5: busy", "v15: busy"]);
  expect(most).toBeLessThanOrEqual(4);
  expect(failuresOf(outcome, 20)).toBe("2 of 20 volumes failed. v5: busy; v15: busy");
  expect(failuresOf({ done: 3, failures: [] }, 3)).toBeUndefined();
});

test("only empty volumes that nobody uses are deleted without typing", () => {
  expect(riskOf([volume("a"), volume("b")]).isLoss).toBe(false);
  expect(riskOf([volume("a"), volume("b", { mapped: 4096 })])).toEqual({
    what: "Deletes 2 volumes with everything in them: 1 with data, 0 exported to hosts.",
    isLoss: true,
  });
  expect(riskOf([volume("a", { exports: ["e"] })]).isLoss).toBe(true);
  expect(riskOf([volume("a", { held: 4096 })]).isLoss).toBe(true);
});

test("volumes are grouped by pool", () => {
  expect([...byPool([volume("a"), volume("b", { pool: "p" }), volume("c")])]).toEqual([
    ["tank", ["a", "c"]],
    ["p", ["b"]],
  ]);
});

test("rows are sorted by a column, numbers within names too", () => {
  const rows = [volume("v10", { size: 1 }), volume("v9", { size: 3 }), volume("v1", { size: 2 })];
  const columns = columnsOf(new Map());
  const names = (name: string, descending: boolean) =>
    sorted(rows, columns, { name, descending }).map((row) => row.name);
  expect(names("Volume", false)).toEqual(["v1", "v9", "v10"]);
  expect(names("Size", true)).toEqual(["v9", "v1", "v10"]);
  expect(names("no such column", true)).toEqual(["v10", "v9", "v1"]);
  expect(orderAfter(undefined, "Size", true)).toEqual({ name: "Size", descending: true });
  expect(orderAfter({ name: "Size", descending: true }, "Size", true).descending).toBe(false);
});

test("columns that were never chosen are the default", () => {
  const names = columnsOf(new Map()).map((column) => column.name);
  expect(hiddenFrom(null).every((name) => names.includes(name))).toBe(true);
  expect(hiddenFrom("")).toEqual([]);
  expect(hiddenFrom("Size,State")).toEqual(["Size", "State"]);
});
