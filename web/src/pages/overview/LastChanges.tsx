import { api } from "../../api/client";
import { time } from "../../format";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { outcomes, words } from "../audit/entries";

/** The newest of the log of changes, for those who may read it. */
export function LastChanges() {
  const admin = useMay("admin");
  if (!admin) return <p className="empty">Only administrators see the log of changes.</p>;
  return <Entries />;
}

function Entries() {
  const { value } = useData("last-changes", (signal) =>
    api.get("/v1/audit", { query: { limit: 40 }, signal }),
  );
  const rows = outcomes(value?.items ?? []).slice(0, 8);
  if (rows.length === 0) return <p className="empty">No changes yet.</p>;
  return (
    <ol className="changes">
      {rows.map((row) => (
        <li key={row.number}>
          <time>{time(row.at_s)}</time>
          <span>
            <b>{row.who}</b> {words(row.operation)} <em>{row.subject}</em>
          </span>
          {row.outcome !== "done" && <span className="warn">{row.outcome}</span>}
        </li>
      ))}
    </ol>
  );
}
