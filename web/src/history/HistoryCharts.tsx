import { useMemo } from "react";
import type { History } from "../api/types";
import { Chart } from "../chart/Chart";
import { Histogram } from "../chart/Histogram";
import { type Chart as ChartPlan, chartsOf, wordsOf } from "./charts";
import { type Part, momentsOf, sizesOf, timesOf, valuesOf } from "./figures";
import { useHistory } from "./useHistory";

/** One chart of a history. */
export function HistoryChart({ of, history }: { of: ChartPlan; history: History }) {
  const at = useMemo(() => momentsOf(history), [history]);
  const lines = useMemo(
    () =>
      of.lines.map(({ name, word, tone, gap }) => ({
        name: word,
        tone,
        values: valuesOf(history, name, gap, of.bands),
      })),
    [of, history],
  );
  return (
    <Chart
      title={of.title}
      summary={wordsOf(of, history)}
      at={at}
      lines={lines}
      show={of.show}
      binary={of.binary ?? false}
      bands={of.bands ?? false}
    />
  );
}

/** Operations by bounds, reads and writes beside each other. */
function Operations({ title, parts }: { title: string; parts: Part[] }) {
  const shown = useMemo(
    () => ({
      buckets: parts.map((part) => part.name),
      bars: [
        { name: "reads", tone: "accent" as const, counts: parts.map((part) => part.reads) },
        { name: "writes", tone: "second" as const, counts: parts.map((part) => part.writes) },
      ],
    }),
    [parts],
  );
  if (parts.length === 0) return null;
  return <Histogram title={title} {...shown} />;
}

/** History of an object in the page's time range, with percentiles, sizes and depth. */
export function HistoryCharts({ object }: { object: string }) {
  const { value, error } = useHistory(object);
  const times = useMemo(() => (value ? timesOf(value) : []), [value]);
  const sizes = useMemo(() => (value ? sizesOf(value) : []), [value]);
  if (!value) return error === undefined ? null : <p className="problem">{error}</p>;
  return (
    <>
      <div className="charts">
        {chartsOf(value).map((chart) => (
          <HistoryChart key={chart.title} of={chart} history={value} />
        ))}
      </div>
      <div className="charts">
        <Operations title="By latency" parts={times} />
        <Operations title="By size" parts={sizes} />
      </div>
    </>
  );
}
