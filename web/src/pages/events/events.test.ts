import { expect, test } from "vitest";
import { about, found, tone, words } from "./events";

const subject = { kind: "drive", pool: "tank", name: "file:/dev/sda" } as const;
const event = {
  number: 7,
  at_s: 1,
  severity: "critical",
  code: "leg_out",
  state: "raised",
  subject,
  message: "drive file:/dev/sda of pool tank is out",
  advice: "",
  runbook: "",
} as const;

test("an event is told in words", () => {
  expect(words("leg_out")).toBe("leg out");
  expect(about(subject)).toBe("tank: file:/dev/sda");
  expect(about({ kind: "pool", pool: "tank", name: "tank" })).toBe("tank");
  expect(about({ kind: "daemon", name: "convect" })).toBe("convect");
  expect([tone("critical"), tone("warning"), tone("info")]).toEqual(["bad", "warn", ""]);
});

test("all words that are looked for are in it, in any order", () => {
  expect(found(event, "")).toBe(true);
  expect(found(event, "RAISED leg sda")).toBe(true);
  expect(found(event, "leg sdb")).toBe(false);
});
