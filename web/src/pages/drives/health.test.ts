import { expect, test } from "vitest";
import type { Health } from "../../api/types";
import { numbersOf, stateOf } from "./health";

const health: Health = {
  state: "good",
  why: "",
  asleep: false,
  at_s: 1,
  model: "EXAMPLE SSD",
  serial: "S1",
  used_percent: 12,
  media_errors: 0,
};

test("what a drive does not tell is left out", () => {
  expect(numbersOf(health)).toBe("EXAMPLE SSD S1, 12 % of its endurance used, 0 media errors");
  expect(numbersOf({ ...health, model: "", serial: "", used_percent: null, media_errors: null })).toBe("");
});

test("one that fails says why, and one that sleeps that it sleeps", () => {
  expect(stateOf(health)).toBe("good");
  expect(stateOf({ ...health, state: "failing", why: "8 sectors" })).toBe("failing: 8 sectors");
  expect(stateOf({ ...health, asleep: true })).toBe("good, asleep");
});
