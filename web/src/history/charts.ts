// Which charts there are of an object. Pure.
import type { History } from "../api/types";
import { bytes, count, milliseconds } from "../format";
import type { Tone } from "../chart/colours";
import { mostOf } from "./figures";

/** A figure that is drawn: its name, what it is called in the chart, and how. */
export interface Line {
  name: string;
  word: string;
  tone: Tone;
  /** The value for gaps, which are not drawn if omitted. */
  gap?: number;
}

export interface Chart {
  title: string;
  lines: readonly Line[];
  show: (value: number) => string;
  /** Ticks at powers of two. */
  binary?: boolean;
  /** Percentiles: the highest first, with the areas between them filled, on a logarithmic axis. */
  bands?: boolean;
}

const seconds = (value: number) => milliseconds(value * 1000);
const whole = (value: number) => bytes(Math.round(value));
const perSecond = (value: number) => `${whole(value)}/s`;
/** The mean of a depth is often far below one. */
const depth = (value: number) => (value < 1 ? value.toFixed(2) : count(value));
const ratio = (value: number) => `${(value * 100).toFixed(1)} %`;

/** A chart of a figure, and of one beside it. */
function two(
  title: string,
  names: readonly [string, string],
  words: readonly [string, string],
  show: Chart["show"],
): Chart {
  const lines: Line[] = [
    { name: names[0], word: words[0], tone: "accent" },
    { name: names[1], word: words[1], tone: "second" },
  ];
  return { title, lines, show };
}

function one(title: string, name: string, word: string, show: Chart["show"]): Chart {
  return { title, lines: [{ name, word, tone: "accent" }], show };
}

/** Latency over time as bands of percentiles: the history has no counts by latency per step. */
function percentiles(title: string, kind: "read" | "write"): Chart {
  const lines: Line[] = [
    { name: `${kind}_latency_p999`, word: "p99.9", tone: "warn" },
    { name: `${kind}_latency_p99`, word: "p99", tone: "slow" },
    { name: `${kind}_latency_p50`, word: "p50", tone: "accent" },
  ];
  return { title, lines, show: seconds, bands: true };
}

/** The charts that open the overview, and the metrics that they need. */
export const FIRST: readonly Chart[] = [
  two("IOPS", ["reads", "writes"], ["reads", "writes"], count),
  percentiles("Read latency", "read"),
];
export const FIRST_SERIES = FIRST.flatMap((chart) => chart.lines.map((line) => line.name)).join(",");

const OPERATIONS: readonly Chart[] = [
  two("IOPS", ["reads", "writes"], ["reads", "writes"], count),
  { ...two("Throughput", ["read_bytes", "write_bytes"], ["reads", "writes"], perSecond), binary: true },
  percentiles("Read latency", "read"),
  percentiles("Write latency", "write"),
  one("Queue depth", "queue_depth", "operations", depth),
];

const TIERS: readonly Line[] = [
  { name: "ram_share", word: "RAM", tone: "ram" },
  { name: "fast_share", word: "fast", tone: "fast" },
  { name: "slow_share", word: "slow", tone: "slow" },
];
const HOSTS: readonly Chart[] = [
  { title: "Read from", lines: TIERS, show: ratio },
  {
    ...two("Promotion and demotion", ["promoted_bytes", "demoted_bytes"], ["promoted", "demoted"], perSecond),
    binary: true,
  },
];

const USED: Chart = { ...one("Used", "used", "bytes", whole), binary: true };
const ERRORS = one("Errors per second", "errors", "errors", count);

const OWN: Record<string, readonly Chart[]> = {
  pool: HOSTS,
  volume: HOSTS,
  tier: [
    one("Share of all reads", "share", "share", ratio),
    { ...two("Data moved", ["moved_in_bytes", "moved_out_bytes"], ["in", "out"], perSecond), binary: true },
    USED,
  ],
  vdrive: [USED, ERRORS],
  drive: [ERRORS],
  export: [one("Sessions", "sessions", "sessions", count)],
  policy: [
    one("Guaranteed IOPS", "promised_iops", "guaranteed", count),
    // A guarantee without demand counts as met.
    {
      title: "Guarantee met",
      lines: [{ name: "met", word: "of the time", tone: "accent", gap: 1 }],
      show: ratio,
    },
    two("Held and late operations per second", ["held", "late"], ["held", "late"], count),
  ],
};

/** The charts of an object, by the kind that its name begins with, as far as something is known for them. */
export function chartsOf(history: History): Chart[] {
  const kind = history.object.split("/")[0]!;
  const known = ({ name }: Line) => mostOf(history, name) !== undefined;
  const own = (OWN[kind] ?? []).filter((chart) => chart.lines.some(known));
  return [...OPERATIONS, ...own];
}

/** Description of a chart: the maximum of each line. */
export function wordsOf(chart: Chart, history: History): string {
  const told = chart.lines.map(({ name, word }) => {
    const most = mostOf(history, name);
    return `${word} up to ${most === undefined ? "–" : chart.show(most)}`;
  });
  return told.join(", ");
}
