import { api } from "../../api/client";
import { bytes, count } from "../../format";
import { SOURCE_NAMES } from "../../live/latency";
import { useData } from "../../live/useData";
import { href } from "../../router";
import { topRanges } from "./ranges";

/** Parts that the volume is examined in. */
const PARTS = 1024;
/** Ranges that are shown. */
const SHOWN = 8;

/** The ranges of a volume that are used most, and where they are read from. */
export function TopRanges({ pool, volume }: { pool: string; volume: string }) {
  const { value } = useData(
    `ranges ${pool}/${volume}`,
    (signal) =>
      api.get("/v1/volumes/{pool}/{volume}/map", { path: { pool, volume }, query: { cells: PARTS }, signal }),
    10,
  );
  if (!value) return null;
  const ranges = topRanges(value, SHOWN);
  if (ranges.length === 0) return <p className="empty">No recent accesses.</p>;
  return (
    <table className="ranges">
      <caption>
        Most accessed of {count(value.cells.length)} ranges; <a href={href("map", pool, volume)}>the map</a>{" "}
        shows all
      </caption>
      <thead>
        <tr>
          <th scope="col">From byte</th>
          <th scope="col">Length</th>
          <th scope="col">Uses</th>
          <th scope="col">Mostly read from</th>
        </tr>
      </thead>
      <tbody>
        {ranges.map((range) => (
          <tr key={range.start}>
            <th scope="row">{bytes(range.start)}</th>
            <td>{bytes(range.length)}</td>
            <td>{count(range.uses)}</td>
            <td>
              <i className={`dot ${range.from}`} /> {SOURCE_NAMES[range.from]}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
