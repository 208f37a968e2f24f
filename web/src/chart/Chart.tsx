import { memo, useMemo, useRef, useState } from "react";
import type uPlot from "uplot";
import { BINARY_STEPS, lonely, momentOf, thin } from "./axes";
import { colourOf, type Tone } from "./colours";
import { useRange } from "./range";
import { usePlot } from "./usePlot";

export interface ChartLine {
  name: string;
  tone: Tone;
  /** One value per moment; null where none is known. */
  values: (number | null)[];
}

interface Props {
  title: string;
  /** The chart in words, for those who do not see it. */
  summary: string;
  /** Moments in seconds since 1970, of the same distance. */
  at: number[];
  lines: ChartLine[];
  /** A value with its unit. */
  show: (value: number) => string;
  /** Ticks at powers of two. */
  binary?: boolean;
  /** A logarithmic axis, with the area from the lowest line to the highest filled. */
  bands?: boolean;
}

/** Charts with this key show the cursor at the same moment. */
const TOGETHER = { key: "page" };
/** Rows of the table beside a chart. */
const ROWS = 60;

function optionsOf(
  props: Props,
  element: HTMLElement,
  onCursor: (index: number | undefined) => void,
  onZoom: (from: number, to: number) => void,
): Omit<uPlot.Options, "width" | "height"> {
  const { lines, show, binary, bands } = props;
  const [muted, grid] = [colourOf(element, "muted"), colourOf(element, "line")];
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  const axis = { stroke: muted, font, ticks: { show: false }, grid: { stroke: grid, width: 1 } };
  return {
    legend: { show: false },
    padding: [8, 24, 0, 0],
    scales: {
      x: { time: true },
      y: bands
        ? { distr: 3 }
        : { range: (_, __, most) => [0, Number.isFinite(most) && most > 0 ? most * 1.06 : 1] },
    },
    cursor: {
      sync: TOGETHER,
      drag: { x: true, y: false, setScale: false },
      points: { size: 7 },
      bind: { dblclick: () => null },
    },
    axes: [
      {
        ...axis,
        size: 26,
        space: 70,
        values: (plot, splits) => {
          const [first = 0, last = 0] = [plot.scales["x"]!.min, plot.scales["x"]!.max];
          return splits.map((at) => momentOf(at, last - first));
        },
      },
      {
        ...axis,
        size: 68,
        gap: 4,
        space: 28,
        ...(bands ? { grid: { ...axis.grid, filter: (_, splits) => splits.map(wholePower) } } : {}),
        ...(binary ? { incrs: [...BINARY_STEPS] } : {}),
        values: (_, splits) => splits.map((value) => (value === null ? "" : value === 0 ? "0" : show(value))),
      },
    ],
    series: [
      {},
      ...lines.map(({ name, tone }, at): uPlot.Series => {
        const stroke = colourOf(element, tone);
        return {
          label: name,
          stroke,
          width: 1.5,
          ...(!bands && at === 0 ? { fill: stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.12)") } : {}),
          points: { size: 4, fill: stroke, filter: (plot, series) => lonely(plot.data[series]!) },
        };
      }),
    ],
    ...(bands
      ? {
          bands: lines.slice(1).map((_, at) => ({
            series: [at + 1, at + 2] as [number, number],
            fill: colourOf(element, lines[at]!.tone).replace(/^rgb\((.*)\)$/, "rgba($1, 0.18)"),
          })),
        }
      : {}),
    hooks: {
      setCursor: [(plot) => onCursor(plot.cursor.idx ?? undefined)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 4) return;
          onZoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** Only powers of ten have a line: nine in each would hide what is drawn. */
function wholePower(value: number): number | null {
  return Number.isInteger(Math.round(Math.log10(value) * 1e9) / 1e9) ? value : null;
}

const ValuesTable = memo(function ValuesTable({ title, at, lines, show }: Props) {
  const span = (at.at(-1) ?? 0) - (at[0] ?? 0);
  const rows = thin(
    at,
    lines.map((line) => line.values),
    ROWS,
  );
  return (
    <div className="values" tabIndex={0} role="region" aria-label={`${title}, values`}>
      <table>
        <caption>Means since each time</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map((line) => (
              <th scope="col" key={line.name}>
                {line.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.at}>
              <th scope="row">{momentOf(row.at, span)}</th>
              {row.values.map((value, line) => (
                <td key={lines[line]!.name}>{value === null ? "–" : show(value)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

/**
 * Lines over time with axes, a legend that tells the values at the cursor, and a table for those who prefer one.
 * Dragging zooms all charts of the page into a window, a double click leaves it.
 */
export function Chart(props: Props) {
  const { title, summary, at, lines, show } = props;
  const { zoom, reset } = useRange();
  const [cursor, setCursor] = useState<number>();
  const [asTable, setAsTable] = useState(false);
  const zooming = useRef(zoom);
  zooming.current = zoom;
  const data = useMemo<uPlot.AlignedData>(() => [at, ...lines.map((line) => line.values)], [at, lines]);
  const shape = [title, ...lines.map((line) => `${line.name} ${line.tone}`)].join("|");
  const box = usePlot(shape, data, (element) =>
    optionsOf(props, element, setCursor, (from, to) => zooming.current(from, to)),
  );
  const moment = cursor === undefined ? undefined : at[cursor];
  const span = (at.at(-1) ?? 0) - (at[0] ?? 0);
  return (
    <figure className="chart">
      <figcaption>
        <span>
          <b>{title}</b>{" "}
          {moment !== undefined && <small>{momentOf(moment, span > 86_400 ? span : 900)}</small>}
        </span>
        <button
          type="button"
          className="small quiet"
          aria-pressed={asTable}
          aria-label={`${title} as a table`}
          onClick={() => setAsTable(!asTable)}
        >
          Table
        </button>
        <ul className="legend" aria-label={`Lines of ${title}`}>
          {lines.map((line) => {
            const value = cursor === undefined ? undefined : line.values[cursor];
            return (
              <li key={line.name}>
                <i className={`dot ${line.tone}`} /> {line.name}
                {moment !== undefined && <b>{value === undefined || value === null ? "–" : show(value)}</b>}
              </li>
            );
          })}
        </ul>
      </figcaption>
      <div ref={box} className="plot" role="img" aria-label={`${title}: ${summary}`} onDoubleClick={reset} />
      {asTable && <ValuesTable {...props} />}
    </figure>
  );
}
