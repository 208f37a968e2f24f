import { useState } from "react";
import { api } from "../../api/client";
import { time } from "../../format";
import { useData } from "../../live/useData";
import { Page } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";
import { outcomes, words, type Change } from "./entries";

const COLUMNS: Column<Change>[] = [
  { name: "When", width: "9.5rem", cell: (row) => <time>{time(row.at_s)}</time> },
  { name: "Who", width: "minmax(6rem, 1fr)", cell: (row) => row.who },
  { name: "From", width: "8rem", wide: true, cell: (row) => row.from },
  { name: "What", width: "minmax(8rem, 1fr)", cell: (row) => words(row.operation) },
  {
    name: "Object",
    width: "minmax(10rem, 3fr)",
    wide: true,
    cell: (row) => <span title={row.subject}>{row.subject}</span>,
  },
  {
    name: "Outcome",
    width: "minmax(6rem, 2fr)",
    cell: (row) => (
      <span className={row.outcome === "done" ? "" : "warn"} title={row.outcome}>
        {row.outcome}
      </span>
    ),
  },
];

export function Audit() {
  const [find, setFind] = useState("");
  const { value, error } = useData("audit", (signal) =>
    api.get("/v1/audit", { query: { limit: 1000 }, signal }),
  );
  const wanted = find.toLowerCase();
  const rows = outcomes(value?.items ?? []).filter((row) =>
    `${row.who} ${words(row.operation)} ${row.subject} ${row.outcome}`.toLowerCase().includes(wanted),
  );
  return (
    <Page
      title="Audit"
      error={error}
      about="Who changed what and when. Each entry contains a hash of the previous one, so that changes to the log are detected."
      actions={
        <input
          type="search"
          aria-label="Search the log"
          placeholder="Find"
          value={find}
          onChange={(event) => setFind(event.target.value)}
        />
      }
    >
      {value?.broken_at !== undefined && value.broken_at !== null && (
        <p className="problem" role="alert">
          The log was modified from entry {value.broken_at} on: its hashes do not match.
        </p>
      )}
      <Table
        label="Changes"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => String(row.number)}
        empty="No changes yet."
        tall={20}
      />
    </Page>
  );
}
