import { useState } from "react";
import { api } from "../../api/client";
import type { Target } from "../../api/types";
import { useData } from "../../live/useData";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Card } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";
import { CreateTarget } from "./CreateTarget";

function health(row: Target): string {
  if (row.error) return row.error;
  const lost = row.lost > 0 ? `, ${row.lost} lost` : "";
  return `${row.delivered} told${row.waiting > 0 ? `, ${row.waiting} wait` : ""}${lost}`;
}

/** Notification targets. */
export function Targets() {
  const { value, error, reload } = useData("targets", (signal) => api.get("/v1/targets", { signal }), 5);
  const [making, setMaking] = useState(false);
  const [deleting, setDeleting] = useState<Confirmation>();
  const [tried, setTried] = useState("");

  function test(name: string) {
    setTried(`Sending a test notification to ${name}…`);
    api
      .post("/v1/targets/{target}/test", { path: { target: name } })
      .then(
        () => setTried(`${name} accepted the test notification.`),
        (problem: unknown) =>
          setTried(`${name}: ${problem instanceof Error ? problem.message : String(problem)}`),
      )
      .finally(reload);
  }

  const columns: Column<Target>[] = [
    { name: "Target", width: "minmax(7rem, 1fr)", cell: (row) => <b>{row.name}</b> },
    { name: "By", width: "5.5rem", cell: (row) => row.kind },
    {
      name: "Destination",
      width: "minmax(9rem, 2fr)",
      wide: true,
      cell: (row) => <span title={row.address}>{row.address}</span>,
    },
    { name: "From", width: "5.5rem", wide: true, cell: (row) => row.severity },
    {
      name: "Status",
      width: "minmax(8rem, 2fr)",
      wide: true,
      cell: (row) => (
        <span className={row.error ? "warn" : ""} title={health(row)}>
          {health(row)}
        </span>
      ),
    },
    {
      name: "",
      width: "9rem",
      right: true,
      cell: (row) => (
        <span className="actions">
          <button
            type="button"
            className="small"
            aria-label={`Test ${row.name}`}
            onClick={() => test(row.name)}
          >
            Test
          </button>
          <button
            type="button"
            className="small"
            aria-label={`Delete ${row.name}`}
            disabled={row.configured}
            title={row.configured ? "Defined in the configuration file" : undefined}
            onClick={() =>
              setDeleting({
                title: `Delete ${row.name}`,
                what: "No more notifications are sent to it; pending ones are discarded.",
                name: row.name,
                action: "Delete target",
                run: () => api.delete("/v1/targets/{target}", { path: { target: row.name } }),
              })
            }
          >
            Delete
          </button>
        </span>
      ),
    },
  ];
  return (
    <Card
      title="Notification targets"
      actions={
        <button type="button" className="small" onClick={() => setMaking(true)}>
          New target
        </button>
      }
    >
      {error !== undefined && <p className="problem">{error}</p>}
      <Table
        label="Targets"
        columns={columns}
        rows={value?.items ?? []}
        rowKey={(row) => row.name}
        empty="No notification targets configured."
      />
      <p role="status" className="about">
        {tried}
      </p>
      {making && <CreateTarget onClose={() => setMaking(false)} />}
      {deleting && <Confirm of={deleting} onClose={() => setDeleting(undefined)} />}
    </Card>
  );
}
