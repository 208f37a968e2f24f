// Which charts there are of an object. Pure.
import type { History } from "../api/types";
import { bytes, count, milliseconds } from "../format";
import type { Tone } from "../ui/Spark";
import { mostOf } from "./figures";

/** A figure that is drawn: its name, what it is called in the chart, and how. */
export interface Line {
  name: string;
  word: string;
  tone: Tone;
  /** The value for gaps; 0 if omitted. */
  gap?: number;
}

export interface Chart {
  title: string;
  lines: readonly Line[];
  show: (value: number) => string;
}

const seconds = (value: number) => milliseconds(value * 1000);
const whole = (value: number) => bytes(Math.round(value));
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

const OPERATIONS: readonly Chart[] = [
  two("IOPS", ["reads", "writes"], ["reads", "writes"], count),
  two("Throughput", ["read_bytes", "write_bytes"], ["reads", "writes"], whole),
  two("Read latency", ["read_latency_p99", "read_latency_p50"], ["p99", "p50"], seconds),
  two("Write latency", ["write_latency_p99", "write_latency_p50"], ["p99", "p50"], seconds),
  two("Latency p99.9", ["read_latency_p999", "write_latency_p999"], ["reads", "writes"], seconds),
  one("Queue depth", "queue_depth", "operations", count),
];

const TIERS: readonly Line[] = [
  { name: "ram_share", word: "RAM", tone: "ram" },
  { name: "fast_share", word: "fast", tone: "fast" },
  { name: "slow_share", word: "slow", tone: "slow" },
];
const HOSTS: readonly Chart[] = [
  { title: "Read from", lines: TIERS, show: ratio },
  two("Promotion and demotion", ["promoted_bytes", "demoted_bytes"], ["promoted", "demoted"], whole),
];

const USED = one("Used", "used", "bytes", whole);
const ERRORS = one("Errors per second", "errors", "errors", count);

const OWN: Record<string, readonly Chart[]> = {
  pool: HOSTS,
  volume: HOSTS,
  tier: [
    one("Share of all reads", "share", "share", ratio),
    two("Data moved", ["moved_in_bytes", "moved_out_bytes"], ["in", "out"], whole),
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
