/** How a line is drawn; the last three are the tiers'. */
export type Tone = "accent" | "second" | "ram" | "fast" | "slow";

interface Props {
  label: string;
  lines: { name: string; tone: Tone; values: number[] }[];
  /** The most that is drawn when all is less. */
  least?: number;
  tall?: number;
}

const WIDTH = 300;

function path(values: number[], most: number, tall: number): string {
  if (values.length < 2) return "";
  const step = WIDTH / (values.length - 1);
  return values
    .map((value, at) => {
      const y = tall - 1 - (Math.min(value, most) / most) * (tall - 3);
      return `${at === 0 ? "M" : "L"}${(at * step).toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}

/** Lines over the last minutes. */
export function Spark({ label, lines, least = 1, tall = 56 }: Props) {
  const most = Math.max(least, ...lines.flatMap((line) => line.values));
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${WIDTH} ${tall}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <line className="ground" x1="0" x2={WIDTH} y1={tall - 0.5} y2={tall - 0.5} />
      {lines.map((line) => {
        const drawn = path(line.values, most, tall);
        return (
          <g key={line.name} className={line.tone}>
            {drawn && <path className="area" d={`${drawn}L${WIDTH} ${tall}L0 ${tall}Z`} />}
            <path className="line" d={drawn} />
          </g>
        );
      })}
    </svg>
  );
}
