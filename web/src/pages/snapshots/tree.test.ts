import { expect, test } from "vitest";
import type { Snapshot } from "../../api/types";
import { tree } from "./tree";

function snapshot(volume: string, name: string, clones: string[] = []): Snapshot {
  return { pool: "p", volume, name, clones, stored: 1, size: 1, created_s: 0, held: false, identity: "" };
}

const ALL = [snapshot("b", "1", ["a"]), snapshot("b", "2"), snapshot("a", "3", ["c"]), snapshot("d", "4")];

function keys(closed: string[] = [], of = ALL): string[] {
  return tree(of, new Set(closed)).map((row) => `${" ".repeat(row.depth)}${row.key}`);
}

test("clones are beneath the snapshot that they were made from", () => {
  expect(keys()).toEqual(["p/b", " p/b@1", "  p/a", "   p/a@3", "    p/c", " p/b@2", "p/d", " p/d@4"]);
});

test("what is closed hides all that is beneath it", () => {
  expect(keys(["p/b"])).toEqual(["p/b", "p/d", " p/d@4"]);
});

test("a clone whose origin is not shown stands by itself, and a circle ends", () => {
  expect(keys([], [ALL[2]!])).toEqual(["p/a", " p/a@3", "  p/c"]);
  expect(keys([], [snapshot("a", "1", ["b"]), snapshot("b", "2", ["a"])])).toHaveLength(4);
});
