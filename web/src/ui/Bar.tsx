import { bytes, percent } from "../format";

export interface Part {
  name: string;
  value: number;
  tone: "ram" | "fast" | "slow" | "shadow" | "accent" | "warn" | "bad";
}

interface Props {
  parts: Part[];
  whole: number;
  label: string;
  /** Legend below: each part with its size. */
  legend?: boolean;
}

/** Parts of a whole beside each other. */
export function Bar({ parts, whole, label, legend }: Props) {
  const used = parts.reduce((sum, part) => sum + part.value, 0);
  return (
    <div className="bar-box">
      <div
        className="bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(percent(used, whole))}
      >
        {parts.map((part) => (
          <span
            key={part.name}
            className={`part ${part.tone}`}
            style={{ width: `${percent(part.value, whole)}%` }}
          />
        ))}
      </div>
      {legend && (
        <ul className="legend">
          {parts.map((part) => (
            <li key={part.name}>
              <i className={`dot ${part.tone}`} />
              {part.name} <b>{bytes(part.value)}</b>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
