import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { bytes, count, milliseconds } from "../../format";
import { IDLE, type VolumeLive } from "../../live/load";
import { useLive } from "../../live/stream";
import { useData } from "../../live/useData";
import { href } from "../../router";
import { useMay } from "../../session";
import { Bar } from "../../ui/Bar";
import { Page } from "../../ui/Page";
import { State } from "../../ui/State";
import { Table, type Column } from "../../ui/Table";
import { ReceiveStream } from "../snapshots/ReceiveStream";
import { CreateVolume } from "./CreateVolume";

async function look(signal: AbortSignal) {
  const [volumes, pools] = await Promise.all([
    api.get("/v1/volumes", { signal }),
    api.get("/v1/pools", { signal }),
  ]);
  return { volumes: volumes.items, pools: pools.items };
}

function columns(live: ReadonlyMap<string, VolumeLive>): Column<Volume>[] {
  const load = (row: Volume) => live.get(`${row.pool}/${row.name}`)?.load ?? IDLE;
  return [
    {
      name: "Volume",
      width: "minmax(8rem, 2fr)",
      cell: (row) => (
        <a href={href("volumes", row.pool, row.name)}>
          <span className="about">{row.pool}/</span>
          {row.name}
        </a>
      ),
    },
    { name: "Size", width: "5.5rem", right: true, cell: (row) => bytes(row.size) },
    {
      name: "Written",
      width: "minmax(8rem, 1.5fr)",
      wide: true,
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
    {
      name: "Read IOPS",
      width: "5.5rem",
      right: true,
      cell: (row) => count(load(row).readIops),
    },
    {
      name: "Write IOPS",
      width: "5.5rem",
      right: true,
      wide: true,
      cell: (row) => count(load(row).writeIops),
    },
    {
      name: "Read time",
      width: "5.5rem",
      right: true,
      wide: true,
      cell: (row) => milliseconds(load(row).readMs),
    },
    {
      name: "Exports",
      width: "minmax(6rem, 1fr)",
      wide: true,
      cell: (row) => row.exports.join(", ") || <span className="about">none</span>,
    },
    { name: "State", width: "6rem", wide: true, cell: (row) => <State of={row.state} /> },
  ];
}

export function Volumes() {
  const { value, error } = useData("volumes", look, 30);
  const live = useLive().volumes;
  const operator = useMay("operator");
  const [find, setFind] = useState("");
  const [making, setMaking] = useState(false);
  const [receiving, setReceiving] = useState(false);
  const wanted = find.toLowerCase();
  const rows = (value?.volumes ?? []).filter((row) =>
    `${row.pool}/${row.name}`.toLowerCase().includes(wanted),
  );
  return (
    <Page
      title="Volumes"
      error={error}
      actions={
        <>
          <input
            type="search"
            aria-label="Find a volume"
            placeholder="Find"
            value={find}
            onChange={(event) => setFind(event.target.value)}
          />
          {operator && value && value.pools.length > 0 && (
            <>
              <button type="button" onClick={() => setReceiving(true)}>
                Receive
              </button>
              <button type="button" className="primary" onClick={() => setMaking(true)}>
                New volume
              </button>
            </>
          )}
        </>
      }
    >
      {value && (
        <Table
          label="Volumes"
          columns={columns(live)}
          rows={rows}
          rowKey={(row) => `${row.pool}/${row.name}/${row.id}`}
          empty={find ? "No matching volumes." : "No volumes yet."}
          tall={20}
        />
      )}
      {receiving && value && (
        <ReceiveStream pools={value.pools.map((pool) => pool.name)} onClose={() => setReceiving(false)} />
      )}
      {making && value && <CreateVolume pools={value.pools} onClose={() => setMaking(false)} />}
    </Page>
  );
}
