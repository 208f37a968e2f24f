import { useState } from "react";
import { api } from "../../api/client";
import type { Why as Answer } from "../../api/types";
import { bytes, count, milliseconds, time } from "../../format";
import { useData } from "../../live/useData";
import { Code } from "../../ui/Code";
import { Dialog } from "../../ui/Dialog";
import { SelectField } from "../../ui/Field";
import { examined, shareOf, WHENS, type When } from "./why";

function Cause({ of }: { of: Answer["findings"][number] }) {
  return (
    <li>
      <h3>
        {of.title}
        {shareOf(of)}
      </h3>
      <ul>
        {of.evidence.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {of.actions.map((action) => (
        <div key={action.text + (action.command ?? "")}>
          <p>{action.text}</p>
          {action.command && <Code label={action.text} text={action.command} />}
        </div>
      ))}
    </li>
  );
}

function Load({ of }: { of: NonNullable<Answer["load"]> }) {
  const usual = typeof of.usual_us === "number" ? `, usually ${milliseconds(of.usual_us / 1000)}` : "";
  return (
    <p>
      {count(Math.round(of.iops))} IOPS, {bytes(Math.round(of.bandwidth))}/s; mean{" "}
      {milliseconds(of.mean_us / 1000)}
      {usual}
    </p>
  );
}

/** Why a volume is slow, or was: causes by the latency that they explain, with evidence and what to do. */
export function Why({ pool, volume, onClose }: { pool: string; volume: string; onClose: () => void }) {
  const [when, setWhen] = useState<When>("now");
  const [at, setAt] = useState("");
  // The time is that of the choice: it does not move while the answer is read.
  const [asked, setAsked] = useState(() => Date.now());
  const range = examined(when, at, asked);
  const { value, error } = useData(
    `why ${pool}/${volume} ${range?.from} ${range?.to}`,
    async (signal) =>
      range && api.get("/v1/volumes/{pool}/{volume}/why", { path: { pool, volume }, query: range, signal }),
  );
  return (
    <Dialog title={`Why is ${pool}/${volume} slow?`} wide onClose={onClose}>
      <div className="why-when">
        <SelectField
          label="Examined time"
          value={when}
          options={WHENS}
          onChange={(next) => {
            setAsked(Date.now());
            setWhen(next);
          }}
        />
        {when === "at" && (
          <div className="field">
            <label htmlFor="why-at">Around (local time)</label>
            <input
              id="why-at"
              type="datetime-local"
              value={at}
              onChange={(event) => {
                setAsked(Date.now());
                setAt(event.target.value);
              }}
            />
          </div>
        )}
      </div>
      <div aria-live="polite">
        {error !== undefined && range && !value && <p className="problem">{error}</p>}
        {!range && <p className="empty">Choose a time that has passed.</p>}
        {value && (
          <>
            <p>
              <strong>{value.headline}</strong>
            </p>
            <p className="hint">
              {time(value.from_s)} to {time(value.to_s)}
            </p>
            {value.load && <Load of={value.load} />}
            <ol className="why">
              {value.findings.map((finding) => (
                <Cause key={finding.title} of={finding} />
              ))}
            </ol>
            {value.missing.length > 0 && (
              <>
                <h3>Not examined</h3>
                <ul>
                  {value.missing.map((line) => (
                    <li key={line}>{line}</li>
                  ))}
                </ul>
              </>
            )}
          </>
        )}
      </div>
    </Dialog>
  );
}
