import { api } from "../../api/client";
import type { MoveCount } from "../../api/types";
import { bytes, count } from "../../format";
import { useData } from "../../live/useData";
import { Table, type Column } from "../../ui/Table";

const COLUMNS: Column<MoveCount>[] = [
  {
    name: "From → to",
    width: "9rem",
    cell: (row) => (row.dropped ? `evicted from ${row.from}` : `${row.from} → ${row.to}`),
  },
  { name: "Why", width: "minmax(12rem, 3fr)", cell: (row) => <span title={row.about}>{row.about}</span> },
  { name: "Moves", width: "6rem", right: true, wide: true, cell: (row) => count(row.moves) },
  { name: "Bytes", width: "6rem", right: true, cell: (row) => bytes(row.bytes) },
];

/** The pool's moves since it was opened, by reason, most frequent first. */
export function Moves({ pool }: { pool: string }) {
  const { value } = useData(
    `moves ${pool}`,
    (signal) => api.get("/v1/pools/{pool}/moves", { path: { pool }, signal }),
    10,
  );
  const rows = (value?.items ?? [])
    .filter((row) => row.moves > 0)
    .sort((one, other) => other.bytes - one.bytes);
  return (
    <details>
      <summary>Moved data, with reasons</summary>
      <Table
        label={`Moves of ${pool}`}
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => `${row.from} ${row.to} ${row.dropped} ${row.reason}`}
        empty="No data has been moved since the pool was opened."
        tall={8}
      />
    </details>
  );
}
