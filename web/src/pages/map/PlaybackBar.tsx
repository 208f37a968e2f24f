import { clock, span } from "../../format";
import { SPEEDS, type Playback, type Speed } from "./usePlayback";

/** Controls for playing the last hour: a time slider, and the speed. */
export function PlaybackBar({ of, onEnd }: { of: Playback; onEnd: () => void }) {
  const { recording, at, playing, speed } = of;
  const ago = Math.max(Math.round(Date.now() / 1000 - at), 0);
  return (
    <div className="playback" role="group" aria-label="Playback">
      <button type="button" className="primary" onClick={() => of.play(!playing)}>
        {playing ? "Pause" : "Play"}
      </button>
      <input
        type="range"
        aria-label="Time"
        aria-valuetext={`${clock(at)}, ${span(ago)} ago`}
        min={recording.from}
        max={recording.to}
        step={1}
        value={Math.round(at)}
        onChange={(event) => of.seek(Number(event.target.value))}
      />
      <output>
        <b>{clock(at)}</b> <span className="about">{span(ago)} ago</span>
      </output>
      <label>
        Speed{" "}
        <select value={speed} onChange={(event) => of.setSpeed(Number(event.target.value) as Speed)}>
          {SPEEDS.map((known) => (
            <option key={known} value={known}>
              {known} ×
            </option>
          ))}
        </select>
      </label>
      <button type="button" onClick={onEnd}>
        Back to live
      </button>
    </div>
  );
}
