import { expect, test } from "vitest";
import { bytes, count, many, milliseconds, parseBytes, parseSpan, percent, span } from "./format";

test("bytes have three digits and a binary unit", () => {
  expect([0, 1023, 1024, 1536, 15 * 1024 ** 2 + 5e5, 24 * 1024 ** 4].map(bytes)).toEqual([
    "0 B",
    "1023 B",
    "1 KiB",
    "1.50 KiB",
    "15.5 MiB",
    "24 TiB",
  ]);
});

test("sizes are read as people write them, and nothing else is", () => {
  const sizes: [string, number | undefined][] = [
    ["8G", 8 * 1024 ** 3],
    ["1.5 TiB", 1.5 * 1024 ** 4],
    ["4096", 4096],
    ["10 mb", 10 * 1024 ** 2],
    ["", undefined],
    ["G", undefined],
    ["-1G", undefined],
    ["1G2", undefined],
    ["99999E", undefined],
  ];
  for (const [text, size] of sizes) expect(parseBytes(text), text).toBe(size);
});

test("spans are written and read", () => {
  expect([0, 59, 61, 7200, 90_000, 864_000].map(span)).toEqual([
    "0 s",
    "59 s",
    "1 min 1 s",
    "2 h",
    "1 d 1 h",
    "10 d",
  ]);
  expect(["15m", "12h", "1d", "5", "h", "1w"].map(parseSpan)).toEqual([
    900,
    43_200,
    86_400,
    undefined,
    undefined,
    undefined,
  ]);
});

test("one is not many", () => {
  expect([many(0, "pool"), many(1, "pool"), many(1000, "pool")]).toEqual([
    "0 pools",
    "1 pool",
    "1,000 pools",
  ]);
});

test("figures stay short", () => {
  expect([0.5, 9999, 126_481, 2_500_000].map(count)).toEqual(["0.5", "9,999", "126k", "2.5M"]);
  expect([0, 0.25, 3.263, 145.7].map(milliseconds)).toEqual(["–", "250 µs", "3.26 ms", "145.7 ms"]);
  expect([percent(1, 0), percent(9999, 10_000), percent(5, 5)]).toEqual([0, 99.9, 100]);
});
