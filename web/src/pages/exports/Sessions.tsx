import { useState } from "react";
import { api } from "../../api/client";
import type { HostSession } from "../../api/types";
import { bytes, time } from "../../format";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Card } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";

/** Hosts' sessions, of front ends that know them. */
export function Sessions() {
  const { value } = useData("sessions", (signal) => api.get("/v1/sessions", { signal }), 5);
  const operator = useMay("operator");
  const [ending, setEnding] = useState<Confirmation>();
  const columns: Column<HostSession>[] = [
    {
      name: "Host",
      width: "minmax(9rem, 2fr)",
      cell: (row) => <span title={row.initiator}>{row.initiator}</span>,
    },
    { name: "From", width: "minmax(7rem, 1fr)", wide: true, cell: (row) => row.address },
    { name: "Exports", width: "minmax(7rem, 1fr)", cell: (row) => row.exports.join(", ") },
    { name: "Since", width: "9.5rem", wide: true, cell: (row) => <time>{time(row.since_s)}</time> },
    { name: "Read", width: "5.5rem", right: true, wide: true, cell: (row) => bytes(row.bytes_read) },
    { name: "Written", width: "5.5rem", right: true, wide: true, cell: (row) => bytes(row.bytes_written) },
  ];
  if (operator) {
    columns.push({
      name: "",
      width: "5rem",
      right: true,
      cell: (row) => (
        <button
          type="button"
          className="small"
          aria-label={`Disconnect session ${row.id}`}
          onClick={() =>
            setEnding({
              title: `Disconnect session ${row.id}`,
              what: `${row.initiator} is asked to log out and is then disconnected. It can log in again unless its access is revoked.`,
              name: String(row.id),
              action: "Disconnect",
              run: () => api.delete("/v1/sessions/{session}", { path: { session: row.id } }),
            })
          }
        >
          End
        </button>
      ),
    });
  }
  return (
    <Card title="Hosts' sessions">
      <Table
        label="Sessions"
        columns={columns}
        rows={value?.items ?? []}
        rowKey={(row) => String(row.id)}
        empty="No iSCSI sessions. NBD, vhost-user-blk and FUSE do not list sessions."
      />
      {ending && <Confirm of={ending} onClose={() => setEnding(undefined)} />}
    </Card>
  );
}
