import { api } from "../api/client";
import type { History } from "../api/types";
import { useData } from "../live/useData";
import { SelectField } from "../ui/Field";
import { Spark } from "../ui/Spark";
import { type Chart, chartsOf, wordsOf } from "./charts";
import { sizesOf, timesOf, valuesOf } from "./figures";
import { Spread } from "./Spread";

const SPANS = [
  ["600", "ten minutes"],
  ["3600", "an hour"],
  ["86400", "a day"],
  ["604800", "a week"],
  ["2592000", "a month"],
  ["63072000", "two years"],
] as const;
export type Span = (typeof SPANS)[number][0];

/** How far back the charts go. */
export function SpanField({ value, onChange }: { value: Span; onChange: (span: Span) => void }) {
  return <SelectField label="The last" value={value} options={SPANS} onChange={onChange} />;
}

function ChartOf({ of, history }: { of: Chart; history: History }) {
  const words = wordsOf(of, history);
  const lines = of.lines.map(({ name, tone, gap }) => ({ name, tone, values: valuesOf(history, name, gap) }));
  return (
    <figure className="chart">
      <figcaption>
        <b>{of.title}</b> <small>{words}</small>
      </figcaption>
      <Spark label={`${of.title}: ${words}`} least={1e-6} lines={lines} />
    </figure>
  );
}

/** History of an object, with percentiles, sizes and depth. */
export function HistoryCharts({ object, span }: { object: string; span: Span }) {
  const look = (signal: AbortSignal) => {
    const to = Math.floor(Date.now() / 1000);
    const query = { object, from: to - Number(span), to };
    return api.get("/v1/history", { query, signal });
  };
  const { value, error } = useData(`history ${object} ${span}`, look, 15);
  if (!value) return error === undefined ? null : <p className="problem">{error}</p>;
  return (
    <>
      <div className="charts">
        {chartsOf(value).map((chart) => (
          <ChartOf key={chart.title} of={chart} history={value} />
        ))}
      </div>
      <div className="charts">
        <Spread title="By time" parts={timesOf(value)} />
        <Spread title="By size" parts={sizesOf(value)} />
      </div>
    </>
  );
}
