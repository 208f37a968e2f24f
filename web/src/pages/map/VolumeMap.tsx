import { useState } from "react";
import type { Volume } from "../../api/types";
import { bytes } from "../../format";
import { Card } from "../../ui/Page";
import { Explain } from "./Explain";
import { MapCanvas } from "./MapCanvas";
import { PlaybackBar } from "./PlaybackBar";
import { cellOf, cellsFor } from "./picture";
import { useMaps } from "./useMaps";
import { usePlayback } from "./usePlayback";

interface Range {
  start: number;
  length: number;
}

const CHUNK = 1 << 20;
/** How much closer one step looks. */
const STEP = 16;

function closer(range: Range, at: number, size: number): Range {
  const length = Math.max(
    Math.floor(range.length / STEP / CHUNK) * CHUNK,
    Math.min(16 * CHUNK, range.length),
  );
  const start = Math.floor(Math.max(at - length / 2, 0) / CHUNK) * CHUNK;
  return { start: Math.min(start, Math.max(Math.floor((size - length) / CHUNK) * CHUNK, 0)), length };
}

/** One volume: from the whole to single chunks, and why a part is where it is. */
export function VolumeMap({ of }: { of: Volume }) {
  const name = `${of.pool}/${of.name}`;
  const [ranges, setRanges] = useState<Range[]>([{ start: 0, length: of.size }]);
  const [chosen, setChosen] = useState<number>();
  const range = ranges[ranges.length - 1]!;
  const cells = cellsFor(range.length);
  const past = usePlayback(of.pool, of.name, range);
  const live = useMaps({ maps: past.playback ? [] : [name], cells, ...range }).get(name);
  const picture = past.playback ? past.picture : live;
  const part = picture ? picture.length / picture.codes.length : range.length / cells;
  const start = (picture?.start ?? range.start) + Math.floor(part * (chosen ?? 0));

  function look(next: Range[]) {
    setRanges(next);
    setChosen(undefined);
  }

  const zoom = (cell: number) =>
    look([...ranges, closer(range, (picture?.start ?? range.start) + part * cell, of.size)]);
  const canZoom = range.length > 16 * CHUNK;
  const cell = picture && chosen !== undefined ? cellOf(picture.codes[chosen] ?? 0) : undefined;
  return (
    <>
      <Card
        title={`${bytes(range.start)} to ${bytes(range.start + range.length)}, ${bytes(part)} per square`}
        actions={
          <>
            <button
              type="button"
              disabled={!canZoom || chosen === undefined}
              onClick={() => zoom(chosen ?? 0)}
            >
              Closer
            </button>
            <button type="button" disabled={ranges.length === 1} onClick={() => look(ranges.slice(0, -1))}>
              Back
            </button>
            <button type="button" disabled={ranges.length === 1} onClick={() => look(ranges.slice(0, 1))}>
              Whole volume
            </button>
          </>
        }
      >
        {picture ? (
          <MapCanvas
            label={`Map of ${name}`}
            picture={picture}
            height={320}
            chosen={chosen}
            onChoose={setChosen}
            onZoom={canZoom ? zoom : undefined}
          />
        ) : (
          <div className="map-wait" style={{ height: 320 }} />
        )}
        {past.playback ? (
          <PlaybackBar
            of={past.playback}
            onEnd={() => {
              past.end();
              setChosen(undefined);
            }}
          />
        ) : (
          <div className="playback">
            <button
              type="button"
              onClick={() => {
                past.begin();
                setChosen(undefined);
              }}
            >
              Play back the last hour
            </button>
            {past.error !== undefined && (
              <span className="about" role="status">
                {past.error}
              </span>
            )}
          </div>
        )}
      </Card>
      {cell && (
        <Card title={`From ${bytes(start)} on`}>
          <ul className="legend">
            {(["ram", "fast", "slow"] as const).map((tier) => (
              <li key={tier}>
                <i className={`dot ${tier}`} />
                {tier === "ram" ? "RAM" : tier} <b>{Math.round((cell[tier] / 15) * 100)} %</b>
              </li>
            ))}
            <li>
              its hottest 64 KiB was used{" "}
              <b>{cell.uses === 15 ? "15 times or more" : `${cell.uses} times`}</b>
            </li>
          </ul>
          {past.playback ? (
            <p className="about">
              Recorded state. Reasons for the placement are only shown for the current state.
            </p>
          ) : (
            <Explain pool={of.pool} volume={of.name} lba={Math.floor(start / of.lba_size)} />
          )}
        </Card>
      )}
    </>
  );
}
