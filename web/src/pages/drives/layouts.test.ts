import { expect, test } from "vitest";
import { CHUNK, layout, levels, lines } from "./layouts";

test("a bare path is a file, and empty lines are none", () => {
  expect(lines(" /dev/sda \n\nmodel:hdd-7200:/tmp/a?size=1G\n")).toEqual([
    "file:/dev/sda",
    "model:hdd-7200:/tmp/a?size=1G",
  ]);
});

test("a stripe has its chunk", () => {
  expect([layout("mirror", "x"), layout("stripe", CHUNK), layout("stripe", "1M")]).toEqual([
    { kind: "mirror" },
    { kind: "stripe", chunk: 65_536 },
    { kind: "stripe", chunk: 1 << 20 },
  ]);
  expect([layout("stripe", ""), layout("stripe", "0")]).toEqual([undefined, undefined]);
});

test("levels grow, and are per cent", () => {
  expect(levels("80, 90,95 %")).toEqual([80, 90, 95]);
  expect(levels(" ")).toEqual([]);
  for (const text of ["90, 80", "5", "101", "80,,90", "eighty", "80.5"]) {
    expect(levels(text), text).toBeUndefined();
  }
});
