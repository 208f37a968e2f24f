import { useMemo, useState } from "react";
import type uPlot from "uplot";
import { count } from "../format";
import { colourOf, type Tone } from "./colours";
import { usePlot } from "./usePlot";

export interface Bars {
  name: string;
  tone: Tone;
  /** One count per bucket. */
  counts: number[];
}

interface Props {
  title: string;
  /** The name of each bucket, in order. */
  buckets: string[];
  bars: Bars[];
  /** What is below the table's counts, for example percentiles: a name and one value for each of the bars. */
  below?: [string, string[]][];
}

/** Part of a bucket's width that its bars take. */
const FILLED = 0.8;

/** Draws the bars of a bucket beside each other. */
function drawBars(plot: uPlot, colours: string[]): void {
  const { ctx } = plot;
  const ground = plot.valToPos(0, "y", true);
  const bucket = plot.valToPos(1, "x", true) - plot.valToPos(0, "x", true);
  const wide = (bucket * FILLED) / colours.length;
  ctx.save();
  for (const [series, colour] of colours.entries()) {
    ctx.fillStyle = colour;
    for (const [at, value] of (plot.data[series + 1] ?? []).entries()) {
      if (!value) continue;
      const left = plot.valToPos(at, "x", true) - (bucket * FILLED) / 2 + wide * series;
      // What is there at all is seen.
      const tall = Math.max(ground - plot.valToPos(value, "y", true), 1);
      ctx.fillRect(left, ground - tall, Math.max(wide - 1, 1), tall);
    }
  }
  ctx.restore();
}

function optionsOf(
  { buckets, bars }: Props,
  element: HTMLElement,
  onCursor: (index: number | undefined) => void,
): Omit<uPlot.Options, "width" | "height"> {
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: colourOf(element, "muted"), font, ticks: { show: false } };
  const colours = bars.map(({ tone }) => colourOf(element, tone));
  return {
    legend: { show: false },
    padding: [8, 24, 0, 0],
    scales: {
      x: { time: false, range: [-0.5, buckets.length - 0.5] },
      y: { range: (_, __, most) => [0, Math.max(most, 1) * 1.06] },
    },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
    axes: [
      {
        ...axis,
        size: 26,
        space: 78,
        grid: { show: false },
        incrs: [1, 2, 3, 4, 6, 8, 12, 16, 32],
        values: (_, splits) => splits.map((at) => (Number.isInteger(at) ? (buckets[at] ?? "") : "")),
      },
      {
        ...axis,
        size: 52,
        gap: 4,
        space: 28,
        grid: { stroke: colourOf(element, "line"), width: 1 },
        values: (_, splits) => splits.map((value) => (Number.isInteger(value) ? count(value) : "")),
      },
    ],
    series: [{}, ...bars.map(({ name }) => ({ label: name, paths: () => null, points: { show: false } }))],
    hooks: {
      draw: [(plot) => drawBars(plot, colours)],
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? undefined)],
    },
  };
}

/** Counts by buckets as bars with axes, and as a table. */
export function Histogram(props: Props) {
  const { title, buckets, bars, below = [] } = props;
  const [cursor, setCursor] = useState<number>();
  const data = useMemo<uPlot.AlignedData>(
    () => [buckets.map((_, at) => at), ...bars.map((bar) => bar.counts)],
    [buckets, bars],
  );
  const shape = [title, ...buckets, ...bars.map((bar) => `${bar.name} ${bar.tone}`)].join("|");
  const box = usePlot(shape, data, (element) => optionsOf(props, element, setCursor));
  const sums = bars.map(({ name, counts }) => `${count(counts.reduce((sum, one) => sum + one, 0))} ${name}`);
  const bucket = cursor === undefined ? undefined : buckets[cursor];
  return (
    <figure className="chart">
      <figcaption>
        <span>
          <b>{title}</b> {bucket !== undefined && <small>{bucket}</small>}
        </span>
        <ul className="legend" aria-label={`Bars of ${title}`}>
          {bars.map((bar) => (
            <li key={bar.name}>
              <i className={`dot ${bar.tone}`} /> {bar.name}
              {bucket !== undefined && <b>{count(bar.counts[cursor!] ?? 0)}</b>}
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={box} className="plot" role="img" aria-label={`${title}: ${sums.join(", ")}`} />
      <details>
        <summary>Table: {title}</summary>
        <table className="counts" aria-label={title}>
          <thead>
            <tr>
              <th scope="col">Operations</th>
              {bars.map((bar) => (
                <th scope="col" key={bar.name}>
                  {bar.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {buckets.map((name, at) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                {bars.map((bar) => (
                  <td key={bar.name}>{count(bar.counts[at] ?? 0)}</td>
                ))}
              </tr>
            ))}
          </tbody>
          {below.length > 0 && (
            <tfoot>
              {below.map(([name, values]) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {values.map((value, at) => (
                    <td key={bars[at]!.name}>{value}</td>
                  ))}
                </tr>
              ))}
            </tfoot>
          )}
        </table>
      </details>
    </figure>
  );
}
