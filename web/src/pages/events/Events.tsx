import { useState } from "react";
import { api } from "../../api/client";
import type { Alert, HappenedEvent } from "../../api/types";
import { time } from "../../format";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Card, Page } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";
import { Targets } from "./Targets";
import { about, found, tone, words } from "./events";

/** How often it is asked again, in seconds. */
const EVERY = 5;

const COLUMNS: Column<HappenedEvent>[] = [
  { name: "When", width: "9.5rem", cell: (row) => <time>{time(row.at_s)}</time> },
  {
    name: "What",
    width: "minmax(7rem, 1fr)",
    cell: (row) => <span className={tone(row.severity)}>{words(row.code)}</span>,
  },
  { name: "", width: "5rem", cell: (row) => (row.state === "noted" ? "" : row.state) },
  {
    name: "Object",
    width: "minmax(8rem, 1fr)",
    wide: true,
    cell: (row) => <span title={about(row.subject)}>{about(row.subject)}</span>,
  },
  {
    name: "Message",
    width: "minmax(10rem, 4fr)",
    wide: true,
    cell: (row) => <span title={row.message}>{row.message}</span>,
  },
];

async function look(signal: AbortSignal) {
  const [alerts, events] = await Promise.all([
    api.get("/v1/alerts", { signal }),
    api.get("/v1/events", { query: { limit: 1000 }, signal }),
  ]);
  return { alerts: alerts.items, events: events.items };
}

function OpenAlert({ alert }: { alert: Alert }) {
  return (
    <li className={tone(alert.severity)}>
      <b>{words(alert.code)}</b>: {alert.message}. {alert.advice && <>Recommended action: {alert.advice}. </>}
      <small>
        Since {time(alert.since_s)}; more in {alert.runbook}
      </small>
    </li>
  );
}

/** Active alerts, and the log of events. */
export function Events() {
  const admin = useMay("admin");
  const [find, setFind] = useState("");
  const { value, error } = useData("events", look, EVERY);
  const rows = (value?.events ?? []).filter((row) => found(row, find));
  return (
    <Page
      title="Events"
      error={error}
      about="Active alerts, and the log of events."
      actions={
        <input
          type="search"
          aria-label="Search events"
          placeholder="Find"
          value={find}
          onChange={(event) => setFind(event.target.value)}
        />
      }
    >
      <Card title="Active alerts">
        {value && value.alerts.length === 0 && <p className="empty">No active alerts.</p>}
        {value && value.alerts.length > 0 && (
          <ul aria-label="Alerts">
            {value.alerts.map((alert) => (
              <OpenAlert key={alert.number} alert={alert} />
            ))}
          </ul>
        )}
      </Card>
      {admin && <Targets />}
      <Table
        label="Events"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => String(row.number)}
        empty="No events yet."
        tall={20}
      />
    </Page>
  );
}
