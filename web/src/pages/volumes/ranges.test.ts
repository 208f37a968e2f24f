import { expect, test } from "vitest";
import type { VolumeMap } from "../../api/types";
import { topRanges } from "./ranges";

const cell = (uses: number, fast: number, slow = 0) => ({ ram: 0, fast, slow, empty: 0, uses });

test("the most used come first, neighbours that are alike are one, and what nobody uses is left out", () => {
  const map = {
    size: 500,
    start: 0,
    cells: [cell(2, 9), cell(7, 1, 5), cell(0, 9), cell(7, 9), cell(7, 9)],
  } as unknown as VolumeMap;
  expect(topRanges(map, 9)).toEqual([
    { start: 100, length: 100, uses: 7, from: "slow" },
    { start: 300, length: 200, uses: 7, from: "fast" },
    { start: 0, length: 100, uses: 2, from: "fast" },
  ]);
  expect(topRanges(map, 1)).toHaveLength(1);
});
