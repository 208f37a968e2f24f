import { useState } from "react";
import { api } from "../../api/client";
import type { Export } from "../../api/types";
import { useData } from "../../live/useData";
import { href } from "../../router";
import { useMay } from "../../session";
import { Card, Page } from "../../ui/Page";
import { State } from "../../ui/State";
import { Table, type Column } from "../../ui/Table";
import { CreateExport } from "./CreateExport";
import { ExportCard } from "./ExportCard";
import { Sessions } from "./Sessions";

const COLUMNS: Column<Export>[] = [
  {
    name: "Export",
    width: "minmax(7rem, 1fr)",
    cell: (row) => <a href={href("exports", row.name)}>{row.name}</a>,
  },
  {
    name: "Volume",
    width: "minmax(7rem, 1fr)",
    cell: (row) => (
      <a href={href("volumes", row.pool, row.volume.split("@")[0]!)}>
        {row.pool}/{row.volume}
      </a>
    ),
  },
  { name: "By", width: "8rem", wide: true, cell: (row) => row.kind },
  {
    name: "Address",
    width: "minmax(10rem, 2fr)",
    wide: true,
    cell: (row) => <code title={row.address ?? ""}>{row.address ?? row.error}</code>,
  },
  { name: "Sessions", width: "5rem", right: true, wide: true, cell: (row) => row.sessions },
  { name: "State", width: "6rem", cell: (row) => <State of={row.state} /> },
];

export function Exports({ chosen }: { chosen: string | undefined }) {
  const { value, error } = useData("exports", (signal) => api.get("/v1/exports", { signal }), 5);
  const operator = useMay("operator");
  const [making, setMaking] = useState(false);
  const shown = value?.items.find((known) => known.name === chosen);
  return (
    <Page
      title="Exports"
      error={error}
      about="Volumes available to virtual machines and hosts."
      actions={
        operator && (
          <button type="button" className="primary" onClick={() => setMaking(true)}>
            New export
          </button>
        )
      }
    >
      {shown && (
        <Card>
          <ExportCard of={shown} open />
        </Card>
      )}
      {value && (
        <Table
          label="Exports"
          columns={COLUMNS}
          rows={value.items}
          rowKey={(row) => `${row.pool}/${row.name}`}
          rowClass={(row) => (row.name === chosen ? "chosen" : undefined)}
          empty="No exports yet."
        />
      )}
      <Sessions />
      {making && <CreateExport onClose={() => setMaking(false)} />}
    </Page>
  );
}
