import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "../../api/client";
import { momentAt, pictureOf, recordingOf, type Recording } from "./playback";
import type { Picture } from "./picture";

/** Seconds of then that pass in a second. */
export const SPEEDS = [10, 60, 240] as const;
export type Speed = (typeof SPEEDS)[number];
/** Time between two steps, in milliseconds. */
const STEP = 100;

export interface Playback {
  recording: Recording;
  /** The time shown: seconds since 1970. */
  at: number;
  playing: boolean;
  speed: Speed;
  seek: (at: number) => void;
  play: (playing: boolean) => void;
  setSpeed: (speed: Speed) => void;
}

interface Past {
  /** Nothing while one examines now. */
  playback: Playback | undefined;
  picture: Picture | undefined;
  error: string | undefined;
  begin: () => void;
  end: () => void;
}

const NOT_YET =
  "Nothing recorded yet: the daemon records each volume at most every ten seconds while it runs.";

/** The last hour of a volume's map. */
export function usePlayback(pool: string, volume: string, range: { start: number; length: number }): Past {
  const [recording, setRecording] = useState<Recording>();
  const [error, setError] = useState<string>();
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [speed, setSpeed] = useState<Speed>(60);
  const end = recording?.to ?? 0;

  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => setAt((now) => Math.min(now + (STEP / 1000) * speed, end)), STEP);
    return () => clearInterval(timer);
  }, [playing, speed, end]);
  useEffect(() => {
    if (at >= end) setPlaying(false);
  }, [at, end]);

  const moment = recording ? momentAt(recording, at) : 0;
  const shown = useRef<number>(undefined);
  const picture = useMemo(
    () =>
      recording &&
      pictureOf(
        recording,
        moment,
        shown.current,
        { start: range.start, length: range.length },
        performance.now(),
      ),
    [recording, moment, range.start, range.length],
  );
  useEffect(() => {
    shown.current = recording ? moment : undefined;
  }, [recording, moment]);

  function begin() {
    setError(undefined);
    api.get("/v1/volumes/{pool}/{volume}/map/frames", { path: { pool, volume } }).then(
      (told) => {
        const known = recordingOf(told);
        setRecording(known);
        setError(known ? undefined : NOT_YET);
        setAt(known?.from ?? 0);
        setPlaying(known !== undefined && known.to > known.from);
      },
      (problem: unknown) => setError(problem instanceof Error ? problem.message : String(problem)),
    );
  }

  function play(wanted: boolean) {
    if (wanted && recording && at >= recording.to) setAt(recording.from);
    setPlaying(wanted);
  }

  return {
    playback: recording && {
      recording,
      at,
      playing,
      speed,
      setSpeed,
      play,
      seek: (wanted) => {
        setPlaying(false);
        setAt(wanted);
      },
    },
    picture,
    error,
    begin,
    end: () => {
      setRecording(undefined);
      setPlaying(false);
    },
  };
}
