import { useState } from "react";
import type { Volume } from "../../api/types";
import { bytes } from "../../format";
import { go, href } from "../../router";
import { MapCanvas } from "./MapCanvas";
import { useMaps } from "./useMaps";

/** Maps that one viewer may have. */
const SHOWN = 16;

/** Volumes beneath each other, the biggest first. */
export function PoolMap({ volumes }: { volumes: Volume[] }) {
  const [from, setFrom] = useState(0);
  const sorted = [...volumes].sort((one, other) => other.size - one.size);
  const shown = sorted.slice(from, from + SHOWN);
  const pictures = useMaps({ maps: shown.map((known) => `${known.pool}/${known.name}`), cells: 256 });
  return (
    <>
      {sorted.length > SHOWN && (
        <div className="pager">
          <button type="button" disabled={from === 0} onClick={() => setFrom(Math.max(from - SHOWN, 0))}>
            Larger maps
          </button>
          <span>
            {from + 1} to {Math.min(from + SHOWN, sorted.length)} of {sorted.length}
          </span>
          <button
            type="button"
            disabled={from + SHOWN >= sorted.length}
            onClick={() => setFrom(from + SHOWN)}
          >
            Smaller maps
          </button>
        </div>
      )}
      {shown.map((known) => {
        const name = `${known.pool}/${known.name}`;
        const picture = pictures.get(name);
        return (
          <section key={name} className="map-row" aria-label={name}>
            <header>
              <a href={href("map", known.pool, known.name)}>{name}</a>
              <span className="about">{bytes(known.size)}</span>
            </header>
            {picture ? (
              <MapCanvas
                label={`Map of ${name}`}
                picture={picture}
                height={36}
                onChoose={() => go("map", known.pool, known.name)}
              />
            ) : (
              <div className="map-wait" style={{ height: 36 }} />
            )}
          </section>
        );
      })}
    </>
  );
}
