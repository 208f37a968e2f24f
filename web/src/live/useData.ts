// Data of lists and details, fetched again after every change.
import { useCallback, useEffect, useRef, useState } from "react";
import { useLiveValue } from "./stream";

export interface Data<T> {
  value: T | undefined;
  error: string | undefined;
  reload: () => void;
}

/** How long changes are collected before one is requested, in milliseconds. */
const CALM = 250;

/**
 * Asks with `fetch`, when `key` becomes another, when something was changed by anybody, when a job begins or ends,
 * and every `every` seconds where that is given. What is `timed` is requested by time and key alone: figures that no
 * change makes wrong.
 */
export function useData<T>(
  key: string,
  fetch: (signal: AbortSignal) => Promise<T>,
  every?: number,
  when: "changed" | "timed" = "changed",
): Data<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: string }>({ key });
  const asking = useRef(fetch);
  asking.current = fetch;
  const [turn, setTurn] = useState(0);
  const changes = useLiveValue((live) => (when === "timed" ? 0 : live.changes));
  const running = useLiveValue((live) =>
    when === "timed"
      ? 0
      : live.jobs.filter((job) => job.state === "running" || job.state === "paused").length,
  );
  const reload = useCallback(() => setTurn((now) => now + 1), []);
  const last = useRef(key);

  useEffect(() => {
    const abort = new AbortController();
    const wait = last.current === key ? CALM : 0;
    last.current = key;
    const timer = setTimeout(
      () => {
        asking.current(abort.signal).then(
          (value) => setState({ key, value }),
          (error: unknown) => {
            if (!abort.signal.aborted) {
              setState((before) => ({
                ...before,
                key,
                error: error instanceof Error ? error.message : String(error),
              }));
            }
          },
        );
      },
      turn === 0 ? 0 : wait,
    );
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, changes, running, turn]);

  useEffect(() => {
    if (every === undefined) return undefined;
    const timer = setInterval(reload, every * 1000);
    return () => clearInterval(timer);
  }, [every, reload]);

  return { value: state.key === key ? state.value : undefined, error: state.error, reload };
}
