// The columns of the table of volumes, and which of them are shown.
import type { Volume } from "../../api/types";
import { bytes, count, milliseconds } from "../../format";
import { IDLE, type VolumeLive } from "../../live/load";
import { href } from "../../router";
import { Bar } from "../../ui/Bar";
import { State } from "../../ui/State";
import type { Column } from "../../ui/Table";

/** Columns that are hidden until they are chosen. */
const HIDDEN = ["Stored", "Fast tier", "Throughput", "Write latency", "Policy", "Space", "Quota"];
const KEY = "convect-volume-columns";

const none = <span className="about">none</span>;

/** A column of a figure, highest first. */
function figure(
  name: string,
  of: (row: Volume) => number,
  show: (value: number) => string,
  wide = true,
): Column<Volume> {
  return { name, width: "5.8rem", right: true, wide, by: of, cell: (row) => show(of(row)) };
}

/** All columns, with loads from what is `live`. */
export function columnsOf(live: ReadonlyMap<string, VolumeLive>): Column<Volume>[] {
  const load = (row: Volume) => live.get(`${row.pool}/${row.name}`)?.load ?? IDLE;
  return [
    {
      name: "Volume",
      width: "minmax(6rem, 2fr)",
      by: (row) => `${row.pool}/${row.name}`,
      cell: (row) => (
        <a href={href("volumes", row.pool, row.name)}>
          <span className="about">{row.pool}/</span>
          {row.name}
        </a>
      ),
    },
    figure("Size", (row) => row.size, bytes, false),
    {
      name: "Written",
      width: "minmax(6rem, 1.5fr)",
      wide: true,
      by: (row) => row.mapped,
      cell: (row) => (
        <Bar
          label={`Written of ${row.name}: ${bytes(row.mapped)}`}
          whole={row.size}
          parts={[
            { name: "fast", value: Math.min(row.fast ?? 0, row.mapped), tone: "fast" },
            { name: "slow", value: Math.max(row.mapped - (row.fast ?? 0), 0), tone: "slow" },
          ]}
        />
      ),
    },
    figure("Stored", (row) => row.held ?? row.mapped, bytes),
    figure("Fast tier", (row) => row.fast ?? 0, bytes),
    figure("Read IOPS", (row) => load(row).readIops, count, false),
    figure("Write IOPS", (row) => load(row).writeIops, count),
    figure(
      "Throughput",
      (row) => load(row).readBytes + load(row).writeBytes,
      (value) => `${bytes(Math.round(value))}/s`,
    ),
    figure("Read latency", (row) => load(row).readMs, milliseconds),
    figure("Write latency", (row) => load(row).writeMs, milliseconds),
    {
      name: "Policy",
      width: "minmax(5rem, 1fr)",
      wide: true,
      by: (row) => row.qos?.policy.name ?? "",
      cell: (row) => row.qos?.policy.name ?? none,
    },
    {
      name: "Space",
      width: "4rem",
      wide: true,
      by: (row) => (row.thick ? "thick" : "thin"),
      cell: (row) => (row.thick ? "thick" : "thin"),
    },
    figure(
      "Quota",
      (row) => row.quota ?? 0,
      (value) => (value === 0 ? "none" : bytes(value)),
    ),
    {
      name: "Exports",
      width: "minmax(6rem, 1fr)",
      wide: true,
      by: (row) => row.exports.join(", "),
      cell: (row) => row.exports.join(", ") || none,
    },
    {
      name: "State",
      width: "6rem",
      wide: true,
      by: (row) => row.state,
      cell: (row) => <State of={row.state} />,
    },
  ];
}

/** The names of hidden columns, parsed from the stored text; the default if that is invalid. */
export function hiddenFrom(stored: string | null): string[] {
  if (stored === null) return HIDDEN;
  return stored.split(",").filter((name) => name !== "");
}

export function storedHidden(): string[] {
  return hiddenFrom(localStorage.getItem(KEY));
}

export function storeHidden(hidden: string[]): void {
  localStorage.setItem(KEY, hidden.join(","));
}
