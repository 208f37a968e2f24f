import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { parseSpan } from "../../format";
import { Dialog } from "../../ui/Dialog";
import { SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

/** Snapshots of some volumes of a pool at one moment, again and again. */
export function SetSchedule({ volumes, onClose }: { volumes: Volume[]; onClose: () => void }) {
  const pools = [...new Set(volumes.map((volume) => volume.pool))];
  const [pool, setPool] = useState(pools[0]!);
  const [name, setName] = useState("hourly");
  const [every, setEvery] = useState("1h");
  const [keep, setKeep] = useState("24");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const seconds = parseSpan(every);
  const own = volumes.filter((volume) => volume.pool === pool);

  function toggle(volume: string) {
    const next = new Set(chosen);
    if (!next.delete(volume)) next.add(volume);
    setChosen(next);
  }

  return (
    <Dialog title="New schedule" onClose={onClose}>
      <Form
        action="Create schedule"
        disabled={name === "" || seconds === undefined || !/^\d+$/.test(keep) || chosen.size === 0}
        onSubmit={async () => {
          if (seconds === undefined) return;
          await api.post("/v1/schedules", {
            body: { pool, name, volumes: [...chosen], every_s: seconds, keep: Number(keep) },
          });
          onClose();
        }}
      >
        {pools.length > 1 && (
          <SelectField
            label="Pool"
            value={pool}
            options={pools.map((known) => [known, known] as const)}
            onChange={(next) => {
              setPool(next);
              setChosen(new Set());
            }}
          />
        )}
        <div className="grid">
          <TextField label="Name" value={name} onChange={setName} autoFocus />
          <TextField label="Every" value={every} onChange={setEvery} hint="For example 15m, 1h or 1d" />
          <TextField
            label="Snapshots to keep per volume"
            value={keep}
            onChange={setKeep}
            inputMode="numeric"
          />
        </div>
        <fieldset className="choices">
          <legend>Volumes</legend>
          {own.map((volume) => (
            <label key={volume.name}>
              <input type="checkbox" checked={chosen.has(volume.name)} onChange={() => toggle(volume.name)} />{" "}
              {volume.name}
            </label>
          ))}
        </fieldset>
      </Form>
    </Dialog>
  );
}
