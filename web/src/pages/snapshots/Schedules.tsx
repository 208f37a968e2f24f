import { useState } from "react";
import { api } from "../../api/client";
import type { Schedule } from "../../api/types";
import { span, time } from "../../format";
import { useMay } from "../../session";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Table, type Column } from "../../ui/Table";

async function remove({ pool, volumes, name }: Schedule): Promise<void> {
  for (const volume of volumes) {
    await api.delete("/v1/schedules/{pool}/{volume}/{schedule}", { path: { pool, volume, schedule: name } });
  }
}

export function Schedules({ schedules }: { schedules: Schedule[] }) {
  const operator = useMay("operator");
  const [confirm, setConfirm] = useState<Confirmation>();
  const columns: Column<Schedule>[] = [
    { name: "Schedule", width: "minmax(7rem, 1fr)", cell: (row) => `${row.pool}/${row.name}` },
    { name: "Every", width: "6rem", cell: (row) => span(row.every_s) },
    { name: "Kept", width: "4rem", right: true, cell: (row) => row.keep },
    { name: "Next", width: "9.5rem", wide: true, cell: (row) => <time>{time(row.next_s)}</time> },
    {
      name: "Missed",
      width: "5rem",
      right: true,
      wide: true,
      cell: (row) => <span className={row.missed > 0 ? "warn" : ""}>{row.missed}</span>,
    },
    {
      name: "Volumes",
      width: "minmax(8rem, 2fr)",
      wide: true,
      cell: (row) => <span title={row.error ?? ""}>{row.volumes.join(", ")}</span>,
    },
  ];
  if (operator) {
    columns.push({
      name: "",
      width: "6rem",
      right: true,
      cell: (row) => (
        <button
          type="button"
          className="small"
          aria-label={`Remove ${row.pool}/${row.name}`}
          onClick={() =>
            setConfirm({
              title: `Remove ${row.pool}/${row.name}`,
              what: "It takes no more snapshots; existing ones are kept.",
              name: row.name,
              action: "Delete schedule",
              run: () => remove(row),
            })
          }
        >
          Remove
        </button>
      ),
    });
  }
  return (
    <>
      <Table
        label="Schedules"
        columns={columns}
        rows={schedules}
        rowKey={(row) => `${row.pool}/${row.name}/${row.volumes[0]}`}
        empty="No schedules."
        tall={8}
      />
      {confirm && <Confirm of={confirm} onClose={() => setConfirm(undefined)} />}
    </>
  );
}
