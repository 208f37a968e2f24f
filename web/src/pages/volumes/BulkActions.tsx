import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { many } from "../../format";
import { useData } from "../../live/useData";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { toasts } from "../../ui/toasts";
import { choiceOf, choicesOf } from "../qos/policies";
import { byPool, failuresOf, forAll, riskOf } from "./bulk";

interface Props {
  volumes: Volume[];
  onClose: () => void;
}

const nameOf = ({ pool, name }: Volume) => `${pool}/${name}`;

/** Acts on every volume; the message tells how many, an error which failed and why. */
async function onAll(volumes: Volume[], did: string, act: (volume: Volume) => Promise<unknown>) {
  const outcome = await forAll(volumes, nameOf, act);
  if (outcome.done > 0) toasts.done(`${many(outcome.done, "volume")} ${did}`);
  const failed = failuresOf(outcome, volumes.length);
  if (failed !== undefined) throw new Error(failed);
}

function SnapshotAll({ volumes, onClose }: Props) {
  const [name, setName] = useState("");
  const pools = [...byPool(volumes)];
  return (
    <Dialog title={`Take a snapshot of ${many(volumes.length, "volume")}`} onClose={onClose}>
      <Form
        action="Take snapshot"
        disabled={name === ""}
        onSubmit={async () => {
          for (const [pool, names] of pools) {
            await api.post("/v1/snapshots", { body: { pool, volumes: names, name } });
          }
          toasts.done(`Snapshot ${name} of ${many(volumes.length, "volume")} taken`);
          onClose();
        }}
      >
        <p>
          {pools.length === 1
            ? "All at the same moment."
            : `All of a pool at the same moment, the ${pools.length} pools one after another.`}
        </p>
        <TextField label="Name" value={name} onChange={setName} autoFocus />
      </Form>
    </Dialog>
  );
}

function PolicyAll({ volumes, onClose }: Props) {
  const pool = volumes[0]!.pool;
  const known = useData(`choices ${pool}`, async (signal) => {
    const options = { path: { pool }, signal };
    const [policies, groups] = await Promise.all([
      api.get("/v1/pools/{pool}/qos/policies", options),
      api.get("/v1/pools/{pool}/qos/groups", options),
    ]);
    return choicesOf(policies.items, groups.items);
  });
  const [chosen, setChosen] = useState("policy none");
  const [overcommit, setOvercommit] = useState(false);
  return (
    <Dialog title={`Policy of ${many(volumes.length, "volume")} of ${pool}`} onClose={onClose}>
      <Form
        action="Set policy"
        onSubmit={async () => {
          await onAll(volumes, "changed", ({ name: volume }) =>
            api.put("/v1/volumes/{pool}/{volume}", {
              path: { pool, volume },
              body: { ...choiceOf(chosen), overcommit },
            }),
          );
          onClose();
        }}
      >
        {known.error !== undefined && <p className="problem">{known.error}</p>}
        <SelectField label="Policy" value={chosen} options={known.value ?? []} onChange={setChosen} />
        <CheckField
          label="Even if the pool cannot meet all minimums (overcommit)"
          checked={overcommit}
          onChange={setOvercommit}
        />
      </Form>
    </Dialog>
  );
}

function deletionOf(volumes: Volume[]): Confirmation {
  const { what, isLoss } = riskOf(volumes);
  const names = volumes.slice(0, 8).map(nameOf).join(", ");
  const more = volumes.length > 8 ? ` and ${volumes.length - 8} more` : "";
  const all = many(volumes.length, "volume");
  return {
    title: `Delete ${all}`,
    what: `${what} ${names}${more}.`,
    action: `Delete ${all}`,
    ...(isLoss ? { name: volumes.length === 1 ? nameOf(volumes[0]!) : `delete ${volumes.length}` } : {}),
    run: () =>
      onAll(volumes, "deleted", ({ pool, name: volume }) =>
        api.delete("/v1/volumes/{pool}/{volume}", { path: { pool, volume } }),
      ),
  };
}

/** What can be done with the selected volumes. */
export function BulkActions({ volumes, onClear }: { volumes: Volume[]; onClear: () => void }) {
  // The dialog keeps what was selected when it was opened: volumes disappear while they are deleted.
  const [open, setOpen] = useState<{ what: "snapshot" | "policy" | "delete"; volumes: Volume[] }>();
  const close = () => setOpen(undefined);
  const isOnePool = byPool(volumes).size === 1;
  return (
    <>
      {volumes.length > 0 && (
        <div className="bulk" role="toolbar" aria-label="Selected volumes">
          <b>{many(volumes.length, "volume")} selected</b>
          <button type="button" onClick={() => setOpen({ what: "snapshot", volumes })}>
            Snapshot
          </button>
          <button
            type="button"
            disabled={!isOnePool}
            title={isOnePool ? undefined : "Policies belong to a pool: select volumes of one pool"}
            onClick={() => setOpen({ what: "policy", volumes })}
          >
            Set policy
          </button>
          <button type="button" className="danger-quiet" onClick={() => setOpen({ what: "delete", volumes })}>
            Delete
          </button>
          <button type="button" className="quiet" onClick={onClear}>
            Clear selection
          </button>
        </div>
      )}
      {open?.what === "snapshot" && <SnapshotAll volumes={open.volumes} onClose={close} />}
      {open?.what === "policy" && <PolicyAll volumes={open.volumes} onClose={close} />}
      {open?.what === "delete" && <Confirm of={deletionOf(open.volumes)} onClose={close} />}
    </>
  );
}
