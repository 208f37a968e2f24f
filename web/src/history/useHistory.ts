// The history of an object in the page's time range: one request per object and range.
import { api } from "../api/client";
import type { History } from "../api/types";
import { boundsOf, useRange } from "../chart/range";
import { type Data, useData } from "../live/useData";

/** Seconds from one request to the next while the range ends now, at least. */
const EVERY = 15;
/** Most requests of one object per range: a range of a day need not be fetched every 15 s. */
const TURNS = 240;

/** `series`: names of metrics, separated by commas; all if omitted. */
export function useHistory(object: string, series?: string): Data<History> {
  const { range } = useRange();
  const look = (signal: AbortSignal) => {
    const bounds = boundsOf(range, Date.now() / 1000);
    const query = { object, ...bounds, ...(series === undefined ? {} : { series }) };
    return api.get("/v1/history", { query, signal });
  };
  const every = "seconds" in range ? Math.max(EVERY, Math.round(range.seconds / TURNS)) : undefined;
  return useData(`history ${object} ${JSON.stringify(range)}`, look, every, "timed");
}
