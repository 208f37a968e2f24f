import { useState } from "react";
import { api } from "../../api/client";
import type { History } from "../../api/types";
import { bytes, count, milliseconds } from "../../format";
import { useData } from "../../live/useData";
import { SelectField } from "../../ui/Field";
import { Card } from "../../ui/Page";
import { Spark } from "../../ui/Spark";
import { Spread } from "./Spread";
import { mostOf, sizesOf, timesOf, valuesOf } from "./figures";

const SPANS = [
  ["600", "ten minutes"],
  ["3600", "an hour"],
  ["86400", "a day"],
  ["604800", "a week"],
  ["2592000", "a month"],
] as const;
type Span = (typeof SPANS)[number][0];

interface Chart {
  title: string;
  /** The figures that are drawn: the first, and one beside it. */
  names: readonly [string, string];
  words: readonly [string, string];
  show: (value: number) => string;
}

const seconds = (value: number) => milliseconds(value * 1000);
const CHARTS: readonly Chart[] = [
  {
    title: "Operations a second",
    names: ["reads", "writes"],
    words: ["reads", "writes"],
    show: count,
  },
  {
    title: "Bytes a second",
    names: ["read_bytes", "write_bytes"],
    words: ["read", "written"],
    show: (value) => bytes(Math.round(value)),
  },
  {
    title: "A read takes",
    names: ["read_latency_p99", "read_latency_p50"],
    words: ["99 of 100", "half"],
    show: seconds,
  },
  {
    title: "A write takes",
    names: ["write_latency_p99", "write_latency_p50"],
    words: ["99 of 100", "half"],
    show: seconds,
  },
  {
    title: "The slowest thousandth",
    names: ["read_latency_p999", "write_latency_p999"],
    words: ["reads", "writes"],
    show: seconds,
  },
  {
    title: "Under way at a time",
    names: ["queue_depth", "queue_depth"],
    words: ["operations", ""],
    show: count,
  },
];

function ChartOf({ of, history }: { of: Chart; history: History }) {
  const [first, second] = of.names;
  const told = (name: string, word: string) => {
    const most = mostOf(history, name);
    return word === "" ? "" : `${word} up to ${most === undefined ? "–" : of.show(most)}`;
  };
  const words = [told(first, of.words[0]), told(second, of.words[1])].filter((word) => word !== "");
  const lines = [{ name: first, tone: "accent" as const, values: valuesOf(history, first) }];
  const beside = { name: `${second} beside`, tone: "second" as const, values: valuesOf(history, second) };
  return (
    <figure className="chart">
      <figcaption>
        <b>{of.title}</b> <small>{words.join(", ")}</small>
      </figcaption>
      <Spark
        label={`${of.title}: ${words.join(", ")}`}
        least={1e-6}
        lines={first === second ? lines : [...lines, beside]}
      />
    </figure>
  );
}

/** What a volume did over time, with percentiles, sizes and depth. */
export function VolumeHistory({ name }: { name: string }) {
  const [span, setSpan] = useState<Span>("3600");
  const look = (signal: AbortSignal) => {
    const to = Math.floor(Date.now() / 1000);
    const query = { object: `volume/${name}`, from: to - Number(span), to };
    return api.get("/v1/history", { query, signal });
  };
  const { value, error } = useData(`history ${name} ${span}`, look, 15);
  return (
    <Card
      title="Over time"
      actions={<SelectField label="The last" value={span} options={SPANS} onChange={setSpan} />}
    >
      {error !== undefined && !value && <p className="problem">{error}</p>}
      {value && (
        <>
          <div className="charts">
            {CHARTS.map((chart) => (
              <ChartOf key={chart.title} of={chart} history={value} />
            ))}
          </div>
          <div className="charts">
            <Spread title="By time" parts={timesOf(value)} />
            <Spread title="By size" parts={sizesOf(value)} />
          </div>
        </>
      )}
    </Card>
  );
}
