import { expect, test } from "vitest";
import type { MapFrames } from "../../api/types";
import { momentAt, pictureOf, recordingOf } from "./playback";

const told: MapFrames = {
  volume: "tank/v",
  size: 4096,
  cells: 4,
  last_s: 130,
  frames: [
    { at_s: 100, all: "0000000000000000" },
    { at_s: 110, changed: "00010f00" },
    { at_s: 120, all: "0f000f00000000f0" },
  ],
};

test("frames become whole maps, and each moment lasts until the next", () => {
  const recording = recordingOf(told)!;
  expect([recording.from, recording.to]).toEqual([100, 130]);
  expect(recording.moments.map((moment) => [...moment.codes])).toEqual([
    [0, 0, 0, 0],
    [0, 0xf00, 0, 0],
    [0xf00, 0xf00, 0, 0xf0],
  ]);
  expect([0, 100, 109.9, 110, 119, 120, 500].map((at) => momentAt(recording, at))).toEqual([
    0, 0, 0, 1, 1, 2, 2,
  ]);
  expect(recordingOf({ ...told, frames: [] })).toBeUndefined();
});

test("a part of it is shown, and what changed since what was shown lights up", () => {
  const recording = recordingOf(told)!;
  const whole = pictureOf(recording, 2, 1, { start: 0, length: 4096 }, 7);
  expect([...whole.changed]).toEqual([7, -Infinity, -Infinity, 7]);
  const part = pictureOf(recording, 1, undefined, { start: 1500, length: 1000 }, 7);
  expect([part.start, part.length, [...part.codes]]).toEqual([1024, 2048, [0xf00, 0]]);
  expect([...part.changed]).toEqual([-Infinity, -Infinity]);
  expect(pictureOf(recording, 0, 0, { start: 4096, length: 100 }, 7).codes.length).toBe(1);
});
