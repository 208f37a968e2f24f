import { expect, test } from "vitest";
import type { LiveMap } from "../../api/types";
import { applied, cellsFor, columnsFor, stripesOf, type Palette } from "./picture";

const head = { volume: "tank/v", size: 8192, start: 0, length: 8192, cells: 3 };
const palette: Palette = { ram: [255, 0, 0], fast: [0, 255, 0], slow: [0, 0, 255], empty: [0, 0, 0] };

test("a whole map is read, then what changed of it", () => {
  const all: LiveMap = { ...head, all: "f00f000000f0" };
  const first = applied(undefined, all, 1);
  expect([...first!.codes]).toEqual([0xf00f, 0, 0xf0]);
  const next = applied(first, { ...head, changed: "000112340009ffff" }, 5);
  expect([...next!.codes]).toEqual([0xf00f, 0x1234, 0xf0]);
  expect([...next!.changed]).toEqual([-Infinity, 5, -Infinity]);
  const again = applied(next, { ...head, all: "f00f123400f1" }, 9);
  expect([...again!.changed]).toEqual([-Infinity, 5, 9]);
});

test("what changed of nothing is nothing", () => {
  expect(applied(undefined, { ...head, changed: "00000000" }, 1)).toBeUndefined();
});

test("stripes are where it lies, brightness is how hot it is", () => {
  const { ram, fast, slow, empty } = palette;
  expect(stripesOf(0x0000, palette)).toEqual([empty, empty, empty, empty]);
  expect(stripesOf(0xf00f, palette)).toEqual([ram, ram, ram, ram]);
  expect(stripesOf(0x448f, palette)).toEqual([ram, fast, slow, slow]);
  expect(stripesOf(0x010f, palette)).toEqual([fast, empty, empty, empty]);
  const [hot, cold] = [stripesOf(0x0f0f, palette)[0]!, stripesOf(0x0f00, palette)[0]!];
  expect(hot[1]).toBeGreaterThan(cold[1]);
  expect(cold[1]).toBeGreaterThan(60);
});

test("parts are about square, and never smaller than a chunk", () => {
  expect(columnsFor(4096, 1024, 256)).toBe(128);
  expect(columnsFor(1, 1000, 10)).toBe(1);
  expect(cellsFor(24 * 2 ** 40)).toBe(4096);
  expect(cellsFor(100 * 2 ** 20)).toBe(64);
  expect(cellsFor(1)).toBe(1);
});
