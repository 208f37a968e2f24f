import { useEffect, useRef, useState, type RefObject } from "react";
import { api } from "../../api/client";
import { bytes } from "../../format";
import { SelectField } from "../../ui/Field";
import {
  flows,
  layout,
  windowOf,
  type Band,
  type Flow as Way,
  type From,
  type Sample,
  type To,
} from "./flow";

/** How often it is requested, in milliseconds, and for how long that is kept. */
const EVERY = 2000;
const KEPT = 600;

const WINDOWS = [
  ["10", "the last 10 s"],
  ["60", "the last minute"],
  ["600", "the last 10 min"],
] as const;

const NAMES: Record<From | To, string> = {
  host: "Hosts",
  ram: "RAM",
  fast: "Fast tier",
  slow: "Slow tier",
  any: "Any tier",
  nowhere: "Nowhere",
  dropped: "Evicted",
};

/** In pixels: the widest picture, and a bar. */
const WIDE = 900;
const BAR = 12;
/** A band that is thicker has its figure. */
const LABELLED = 13;

function rate(value: number): string {
  return `${bytes(Math.round(value))}/s`;
}

function words({ from, to }: Way): string {
  if (to === "dropped") return `${NAMES[from]}, copies evicted`;
  if (to === "host") return `${NAMES[from]} → hosts`;
  return from === to ? `within the ${NAMES[from].toLowerCase()}` : `${NAMES[from]} → ${NAMES[to]}`;
}

function BandPath({ of, to }: { of: Band; to: number }) {
  const { left, right, thick, flow } = of;
  const from = BAR;
  const middle = (from + to) / 2;
  const [up, down] = [left - thick / 2, left + thick / 2];
  const [upTo, downTo] = [right - thick / 2, right + thick / 2];
  const d = `M${from} ${up}C${middle} ${up} ${middle} ${upTo} ${to} ${upTo}V${downTo}C${middle} ${downTo} ${middle} ${down} ${from} ${down}Z`;
  return (
    <g className={`band ${flow.from} ${flow.to === "dropped" ? "dropped" : ""}`}>
      <title>{`${words(flow)}: ${rate(flow.rate)}`}</title>
      <path d={d} />
      {thick >= LABELLED && (
        <text x={from + 8} y={left} dy="0.35em">
          {rate(flow.rate)}
        </text>
      )}
    </g>
  );
}

/** How wide an element is, in pixels, once it is there. */
function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!box.current) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

function Picture({ pool, ways, width }: { pool: string; ways: Way[]; width: number }) {
  const right = width - BAR;
  const { tall, sources, targets, bands } = layout(ways);
  return (
    <svg
      className="flow"
      width={width}
      height={tall}
      role="img"
      aria-label={`Flow between hosts and the tiers of ${pool}; see the table below for figures`}
    >
      {bands.map((band) => (
        <BandPath key={`${band.flow.from} ${band.flow.to}`} of={band} to={right} />
      ))}
      {sources.map((node) => (
        <g key={node.name} className={`node ${node.name}`}>
          <rect x={0} y={node.y} width={BAR} height={node.tall} />
          <text x={0} y={node.y - 6}>
            {node.name === "host" ? "Hosts write" : `from ${NAMES[node.name]}`} {rate(node.rate)}
          </text>
        </g>
      ))}
      {targets.map((node) => (
        <g key={node.name} className={`node ${node.name}`}>
          <rect x={right} y={node.y} width={BAR} height={node.tall} />
          <text x={width} y={node.y - 6} textAnchor="end">
            {node.name === "host"
              ? "Hosts read"
              : node.name === "dropped"
                ? "Copies evicted"
                : `to ${NAMES[node.name]}`}{" "}
            {rate(node.rate)}
          </text>
        </g>
      ))}
    </svg>
  );
}

/** Samples of counters every two seconds while the page is open. */
function useSamples(pool: string): { samples: Sample[]; error: string | undefined } {
  const [samples, setSamples] = useState<Sample[]>([]);
  const [error, setError] = useState<string>();
  useEffect(() => {
    const abort = new AbortController();
    const signal = abort.signal;
    const options = { path: { pool }, signal };
    let timer: ReturnType<typeof setTimeout>;
    async function look() {
      try {
        const [counters, moves] = await Promise.all([
          api.get("/v1/pools/{pool}/counters", options),
          api.get("/v1/pools/{pool}/moves", options),
        ]);
        const at = performance.now();
        setSamples((known) => [
          ...known.filter((sample) => sample.at >= at - (KEPT + 10) * 1000),
          { at, counters, moves: moves.items },
        ]);
        setError(undefined);
      } catch (problem) {
        if (!signal.aborted) setError(problem instanceof Error ? problem.message : String(problem));
      }
      if (!signal.aborted) timer = setTimeout(() => void look(), EVERY);
    }
    void look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [pool]);
  return { samples, error };
}

/** Bytes a second between hosts and the tiers of a pool, while one looks. */
export function Flow({ pool }: { pool: string }) {
  const { samples, error } = useSamples(pool);
  const [seconds, setSeconds] = useState<"10" | "60" | "600">("10");
  const both = windowOf(samples, Number(seconds));
  const ways = both ? flows(...both) : [];
  const [box, width] = useWidth();
  const drawn = ways.some((way) => way.to !== "nowhere");
  return (
    <section className="flow-box" aria-label={`Flow of ${pool}`}>
      <header>
        <h3>Flow between tiers</h3>
        <SelectField label="Mean over" value={seconds} options={WINDOWS} onChange={setSeconds} />
      </header>
      {error !== undefined && <p className="problem">{error}</p>}
      {!both && error === undefined && <p className="about">Looking…</p>}
      {both && !drawn && <p className="about">No data is moving.</p>}
      <div ref={box}>
        {drawn && width > 0 && <Picture pool={pool} ways={ways} width={Math.min(width, WIDE)} />}
      </div>
      {ways.length > 0 && (
        <table className="flow-table" aria-label={`Flow of ${pool} in figures`}>
          <thead>
            <tr>
              <th scope="col">Way</th>
              <th scope="col" className="right">
                Rate
              </th>
              <th scope="col">Reasons, most frequent first</th>
            </tr>
          </thead>
          <tbody>
            {ways.map((way) => (
              <tr key={`${way.from} ${way.to}`}>
                <th scope="row">{words(way)}</th>
                <td className="right">{rate(way.rate)}</td>
                <td>{way.reasons.map((reason) => reason.about).join("; ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
