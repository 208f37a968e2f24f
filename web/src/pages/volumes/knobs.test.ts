import { expect, test } from "vitest";
import type { Volume } from "../../api/types";
import { changeOf, knobsOf } from "./knobs";

const volume = {
  quota: 2 ** 30,
  placement: { promotion: true, pins: [], reaction: "normal", bypass: { initiators: ["a", "b"] } },
} as unknown as Volume;

test("only what was changed is asked for", () => {
  const before = knobsOf(volume);
  expect(changeOf(before, before)).toEqual({});
  expect(changeOf(before, { ...before, reaction: "eager", fastFloor: "1G" })).toEqual({
    reaction: "eager",
    fast_floor: 2 ** 30,
  });
});

test("what is emptied is taken away", () => {
  const before = knobsOf(volume);
  expect(changeOf(before, { ...before, quota: " ", bypass: "" })).toEqual({ quota: 0, bypass: [] });
});

test("a size that cannot be read changes nothing", () => {
  const before = knobsOf(volume);
  expect(changeOf(before, { ...before, quota: "much" })).toBeUndefined();
});
