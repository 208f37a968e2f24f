import type { ForecastPoint } from "../../api/types";
import { bytes } from "../../format";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [640, 260, 44, 16, 14, 30];

/** Sizes double from mark to mark, so they are set by their logarithm. */
function across(points: readonly ForecastPoint[]): (percent: number) => number {
  const logs = points.map((point) => Math.log2(Math.max(point.percent, 1)));
  const [least, most] = [Math.min(...logs), Math.max(...logs)];
  const wide = Math.max(most - least, 1);
  return (percent) => LEFT + ((Math.log2(Math.max(percent, 1)) - least) / wide) * (WIDTH - LEFT - RIGHT);
}

function down(share: number): number {
  return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
}

/** How much is answered without the slow tier at each size, with today's size marked. */
export function Curve({ points }: { points: ForecastPoint[] }) {
  const x = across(points);
  const line = (of: (point: ForecastPoint) => number | null | undefined) =>
    points
      .filter((point) => typeof of(point) === "number")
      .map(
        (point, at) => `${at === 0 ? "M" : "L"}${x(point.percent).toFixed(1)} ${down(of(point)!).toFixed(1)}`,
      )
      .join("");
  const today = points.find((point) => point.percent === 100);
  return (
    <figure className="curve">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label="Hit rate (RAM and fast tier) by size of the fast tier"
      >
        {[0, 0.25, 0.5, 0.75, 1].map((share) => (
          <g key={share} className="axis">
            <line x1={LEFT} x2={WIDTH - RIGHT} y1={down(share)} y2={down(share)} />
            <text x={LEFT - 8} y={down(share) + 4} textAnchor="end">
              {share * 100} %
            </text>
          </g>
        ))}
        {points
          .filter((point) => [25, 50, 100, 200, 400].includes(point.percent))
          .map((point) => (
            <text
              key={point.percent}
              className="axis"
              x={x(point.percent)}
              y={HEIGHT - 8}
              textAnchor="middle"
            >
              {bytes(point.bytes)}
            </text>
          ))}
        {today && (
          <g className="today">
            <line x1={x(100)} x2={x(100)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text x={x(100) + 6} y={HEIGHT - BOTTOM - 8}>
              today
            </text>
          </g>
        )}
        <path className="lru" d={line((point) => point.lru_hits)} />
        <path className="own" d={line((point) => point.hits)} />
        {points
          .filter((point) => typeof point.hits === "number")
          .map((point) => (
            <circle key={point.percent} className="own" cx={x(point.percent)} cy={down(point.hits!)} r="4" />
          ))}
      </svg>
      <figcaption className="legend">
        <span>
          <i className="dot accent" /> this pool's policy
        </span>
        <span>
          <i className="dot second" /> LRU, for comparison
        </span>
      </figcaption>
    </figure>
  );
}
