import { expect, test } from "vitest";
import type { Why } from "../../api/types";
import { examined, shareOf } from "./why";

const NOW = Date.UTC(2026, 11, 1, 16, 30);

test("the examined time ends now, or is around a time that has passed", () => {
  const end = NOW / 1000;
  expect(examined("now", "", NOW)).toEqual({});
  expect(examined("hour", "", NOW)).toEqual({ from: end - 3600 });
  const local = (ms: number) => {
    const date = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
    return date.toISOString().slice(0, 16);
  };
  const three = NOW - 5_400_000;
  expect(examined("at", local(three), NOW)).toEqual({ from: three / 1000 - 300, to: three / 1000 + 300 });
  expect(examined("at", local(NOW - 60_000), NOW)).toEqual({ from: end - 360, to: end });
  expect(examined("at", local(NOW + 3_600_000), NOW)).toBeUndefined();
  expect(examined("at", "", NOW)).toBeUndefined();
});

test("a cause says its share, unless it cannot be measured", () => {
  const cause = { share_percent: 98.2, explained_us: 3200 } as Why["findings"][number];
  expect(shareOf(cause)).toBe(": 98 %, 3.20 ms an I/O");
  expect(shareOf({ ...cause, share_percent: null })).toBe("");
});
