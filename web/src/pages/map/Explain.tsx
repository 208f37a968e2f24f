import { api } from "../../api/client";
import type { Explanation } from "../../api/types";
import { bytes, time } from "../../format";
import { useData } from "../../live/useData";

type Move = Explanation["moves"][number];

function displaced({ displaced: other }: Move): string {
  if (!other) return "";
  return ` in place of ${other.volume ?? "since deleted data"} at ${bytes(other.offset)}`;
}

function way({ dropped, from, to }: Move): string {
  return dropped ? `a copy in ${from} was evicted` : `${from} → ${to}`;
}

/** Where the first block of what was chosen lies, since when, and why. */
export function Explain({ pool, volume, lba }: { pool: string; volume: string; lba: number }) {
  const { value, error } = useData(
    `explain ${pool}/${volume} ${lba}`,
    (signal) =>
      api.get("/v1/volumes/{pool}/{volume}/explain", {
        path: { pool, volume },
        query: { lba },
        signal,
      }),
    2,
  );
  if (error && !value) return <p className="problem">{error}</p>;
  if (!value) return <p className="about">…</p>;
  return (
    <div className="explain">
      <h3>First block, LBA {value.lba.toLocaleString("en")}</h3>
      {value.places.length === 0 && <p>Not allocated: never written or discarded; reads as zeroes.</p>}
      <ul className="plain">
        {value.places.map((place) => (
          <li key={place.tier}>
            <i className={`dot ${place.tier}`} /> <b>{place.tier === "ram" ? "RAM" : `${place.tier} tier`}</b>{" "}
            ({place.kind}){place.vdrive !== undefined && place.vdrive !== null && `, vdrive ${place.vdrive}`}
            {place.drives.map((drive) => (
              <span key={drive.drive} className="about">
                {" "}
                {drive.drive} at {bytes(drive.byte)}
              </span>
            ))}
          </li>
        ))}
      </ul>
      {value.heat && (
        <p>
          Hosts accessed its 64 KiB {value.heat.uses === 15 ? "15 times or more" : `${value.heat.uses} times`}
          ; it is worth {value.heat.worth.toPrecision(2)}, and what leaves the fast tier{" "}
          {value.heat.bar.toPrecision(2)}.
        </p>
      )}
      {value.inherited && (
        <p className="about">Not written since a snapshot{value.snapshot && ` (${value.snapshot})`}.</p>
      )}
      <h3>Recent moves</h3>
      {value.moves.length === 0 && <p className="about">Not moved since {time(value.log_since_s)}.</p>}
      <ol className="changes">
        {value.moves.map((move, at) => (
          <li key={`${move.at_s} ${move.reason} ${at}`}>
            <time>{time(move.at_s)}</time>
            <span>
              <b>{way(move)}</b> {move.about}
              {displaced(move)}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}
