// A volume's map as it was, moment after moment. Pure.
import type { MapFrames } from "../../api/types";
import { applied, type Picture } from "./picture";

/** The recording of the last hour. Times are seconds since 1970. */
export interface Recording {
  size: number;
  from: number;
  to: number;
  moments: { at: number; codes: Uint16Array }[];
}

/** The frames as whole maps; nothing when there is none. */
export function recordingOf(told: MapFrames): Recording | undefined {
  const head = { volume: told.volume, size: told.size, start: 0, length: told.size, cells: told.cells };
  const moments: Recording["moments"] = [];
  let picture: Picture | undefined;
  for (const frame of told.frames) {
    picture = applied(picture, { ...head, all: frame.all ?? null, changed: frame.changed ?? null }, 0);
    if (picture) moments.push({ at: frame.at_s, codes: picture.codes.slice() });
  }
  const first = moments[0];
  if (!first) return undefined;
  return { size: told.size, from: first.at, to: Math.max(told.last_s, first.at), moments };
}

/** Which moment it was then: the last one that is not after it. */
export function momentAt({ moments }: Recording, at: number): number {
  const after = moments.findIndex((moment) => moment.at > at);
  return Math.max(0, (after < 0 ? moments.length : after) - 1);
}

/**
 * The parts of a moment that have something of a range. What was another at the moment that was shown before is lit
 * from `now` on.
 */
export function pictureOf(
  recording: Recording,
  moment: number,
  before: number | undefined,
  range: { start: number; length: number },
  now: number,
): Picture {
  const codes = recording.moments[moment]!.codes;
  const part = recording.size / codes.length;
  const from = Math.min(Math.floor(range.start / part), codes.length - 1);
  const to = Math.max(Math.min(Math.ceil((range.start + range.length) / part), codes.length), from + 1);
  const shown = codes.slice(from, to);
  const last = before === undefined ? undefined : recording.moments[before]?.codes;
  const changed = new Float64Array(shown.length).fill(-Infinity);
  shown.forEach((code, at) => {
    if (last && last[from + at] !== code) changed[at] = now;
  });
  return { size: recording.size, start: from * part, length: (to - from) * part, codes: shown, changed };
}
