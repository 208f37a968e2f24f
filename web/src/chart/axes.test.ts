import { expect, test } from "vitest";
import { lonely, momentOf, thin } from "./axes";
import { boundsOf, windowOf } from "./range";

test("a moment is as precise as the span needs", () => {
  const at = new Date(2026, 10, 30, 9, 5, 7).getTime() / 1000;
  expect(momentOf(at, 600)).toBe("09:05:07");
  expect(momentOf(at, 3600)).toBe("09:05");
  expect(momentOf(at, 7 * 86_400)).toBe("11-30 09:05");
  expect(momentOf(at, 90 * 86_400)).toBe("2026-11-30");
});

test("the table has means of few parts, without what is not known", () => {
  const rows = thin(
    [0, 1, 2, 3],
    [
      [1, 3, null, null],
      [2, null, 4, 6],
    ],
    2,
  );
  expect(rows).toEqual([
    { at: 0, values: [2, 2] },
    { at: 2, values: [null, 5] },
  ]);
  expect(thin([], [], 60)).toEqual([]);
});

test("only values without a neighbour are lonely", () => {
  expect(lonely([1, null, 2, 3, undefined, 4])).toEqual([0, 5]);
});

test("a window has whole seconds, in order, and is not too short", () => {
  expect(windowOf(100.7, 160.2)).toEqual({ from: 100, to: 161 });
  expect(windowOf(160, 100)).toEqual({ from: 100, to: 160 });
  expect(windowOf(100, 101)).toEqual({ from: 100, to: 110 });
});

test("a range of the last seconds ends now, a zoom stays where it is", () => {
  expect(boundsOf({ seconds: 900 }, 1000.9)).toEqual({ from: 100, to: 1000 });
  expect(boundsOf({ from: 5, to: 50 }, 1000)).toEqual({ from: 5, to: 50 });
});
