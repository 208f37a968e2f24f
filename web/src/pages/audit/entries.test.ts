import { expect, test } from "vitest";
import type { AuditEntry } from "../../api/types";
import { outcomes } from "./entries";

function entry(number: number, who: string, outcome: string, of?: number): AuditEntry {
  const told = {
    number,
    at_s: 0,
    who,
    from: "socket",
    operation: "LogIn",
    subject: "",
    outcome,
    hash: "",
  };
  return of === undefined ? told : { ...told, of };
}

test("a change is a row with what became of it", () => {
  const rows = outcomes([
    entry(5, "me", "asked"),
    entry(4, "ci", "done", 2),
    entry(3, "me", "no", 1),
    entry(2, "nobody", "asked"),
    entry(1, "me", "asked"),
  ]);
  expect(rows.map((row) => [row.number, row.who, row.outcome])).toEqual([
    [5, "me", "not ended"],
    [2, "ci", "done"],
    [1, "me", "no"],
  ]);
});
