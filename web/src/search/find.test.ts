import { expect, test } from "vitest";
import { found, type Entry } from "./find";

const entries: Entry[] = [
  { kind: "page", name: "Volumes", to: ["volumes"] },
  { kind: "volume", name: "tank/mydb", to: [] },
  { kind: "volume", name: "tank/db-main", to: [] },
  { kind: "export", name: "db-main", to: [] },
  { kind: "snapshot", name: "tank/db-main@before", to: [] },
];
const names = (text: string) => found(entries, text).map(({ kind, name }) => `${kind} ${name}`);

test("the beginning of a name is best, then that of a part of it", () => {
  expect(names("db")).toEqual([
    "export db-main",
    "volume tank/db-main",
    "snapshot tank/db-main@before",
    "volume tank/mydb",
  ]);
});

test("every word has to match, the kind too, and case does not matter", () => {
  expect(names("Snapshot MAIN")).toEqual(["snapshot tank/db-main@before"]);
  expect(names("volume nothing")).toEqual([]);
});

test("without a word everything is found, up to a bound", () => {
  expect(names("")).toHaveLength(entries.length);
  const thousand = Array.from({ length: 1000 }, (): Entry => entries[1]!);
  expect(found(thousand, "tank")).toHaveLength(40);
});
