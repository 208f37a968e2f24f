import { useState } from "react";
import { api } from "../../api/client";
import type { Export } from "../../api/types";
import { many } from "../../format";
import { href } from "../../router";
import { HistoryButton } from "../../history/HistoryButton";
import { useMay } from "../../session";
import { Code } from "../../ui/Code";
import { Confirm } from "../../ui/Confirm";
import { Facts } from "../../ui/Facts";
import { State } from "../../ui/State";
import { ChangeExport } from "./ChangeExport";
import { SwitchExport } from "./SwitchExport";
import { ways } from "./connect";

/** An export with the commands that connect to it. */
export function ExportCard({ of, open }: { of: Export; open?: boolean }) {
  const operator = useMay("operator");
  const [ending, setEnding] = useState(false);
  const [changing, setChanging] = useState(false);
  const [switching, setSwitching] = useState(false);
  const connect = ways(of);
  const [system, setSystem] = useState(connect[0]?.system);
  const shown = connect.find((way) => way.system === system) ?? connect[0];
  const volume = of.volume.split("@")[0]!;
  return (
    <article className="export" aria-label={`Export ${of.name}`}>
      <header>
        <h3>{of.name}</h3>
        <State of={of.state} />
        <span className="about">{of.kind}</span>
        <a href={href("volumes", of.pool, volume)}>
          {of.pool}/{of.volume}
        </a>
        <span className="about">{many(of.sessions, "session")}</span>
        <HistoryButton object={`export/${of.pool}/${of.name}`} title={`export ${of.name}`} />
        {operator && (
          <>
            <button
              type="button"
              className="small"
              aria-label={`Change ${of.name}`}
              onClick={() => setChanging(true)}
            >
              Change
            </button>
            <button
              type="button"
              className="small"
              aria-label={`${of.state === "disabled" ? "Enable" : "Disable"} ${of.name}`}
              onClick={() => setSwitching(true)}
            >
              {of.state === "disabled" ? "Enable" : "Disable"}
            </button>
            <button
              type="button"
              className="small"
              aria-label={`Delete ${of.name}`}
              onClick={() => setEnding(true)}
            >
              End it
            </button>
          </>
        )}
      </header>
      {of.error && <p className="problem">{of.error}</p>}
      <details open={open}>
        <summary>Connection commands</summary>
        <Facts
          of={[
            ["Address", of.address && <code>{of.address}</code>],
            ["Initiator", of.initiator],
          ]}
        />
        {connect.length > 1 && (
          <div className="tabs" role="group" aria-label="System">
            {connect.map((way) => (
              <button
                key={way.system}
                type="button"
                className="small"
                aria-pressed={way.system === shown?.system}
                onClick={() => setSystem(way.system)}
              >
                {way.system}
              </button>
            ))}
          </div>
        )}
        {shown && <Code label={`Commands for ${shown.system}`} text={shown.lines.join("\n")} />}
      </details>
      {changing && <ChangeExport of={of} onClose={() => setChanging(false)} />}
      {switching && <SwitchExport of={of} onClose={() => setSwitching(false)} />}
      {ending && (
        <Confirm
          of={{
            title: `Delete ${of.name}`,
            what: "Hosts that use it are disconnected; the volume is kept.",
            name: of.name,
            action: "Delete export",
            run: () =>
              api.delete("/v1/exports/{export}", { path: { export: of.name }, query: { pool: of.pool } }),
          }}
          onClose={() => setEnding(false)}
        />
      )}
    </article>
  );
}
