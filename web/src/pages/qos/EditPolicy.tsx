import { useState } from "react";
import { api } from "../../api/client";
import type { QosPolicy } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { changeOf, figuresOf, NEW } from "./policies";

const LEVELS = [
  ["1", "1: keeps its minimum longest"],
  ["2", "2"],
  ["3", "3"],
  ["4", "4"],
  ["5", "5: loses its minimum first"],
] as const;

const REACTIONS = [
  ["normal", "According to the level"],
  ["eager", "Eager: more, sooner"],
  ["thrifty", "Thrifty: less, later"],
] as const;

interface Props {
  pool: string;
  /** The policy that is changed; none when one is created. */
  of?: QosPolicy | undefined;
  onClose: () => void;
}

/** A new policy, or other figures of one. */
export function EditPolicy({ pool, of, onClose }: Props) {
  const [name, setName] = useState("");
  const [figures, setFigures] = useState(of ? figuresOf(of) : NEW);
  const [overcommit, setOvercommit] = useState(false);
  const change = changeOf(figures);
  const set = (key: keyof typeof figures) => (value: string) => setFigures({ ...figures, [key]: value });
  return (
    <Dialog title={of ? `Change ${pool}/${of.name}` : `New policy of ${pool}`} onClose={onClose}>
      <Form
        action={of ? "Save changes" : "Create policy"}
        disabled={change === undefined || (!of && name.trim() === "")}
        onSubmit={async () => {
          if (!change) return;
          if (of) {
            await api.put("/v1/pools/{pool}/qos/policies/{policy}", {
              path: { pool, policy: of.name },
              body: { ...change, overcommit },
            });
          } else {
            await api.post("/v1/pools/{pool}/qos/policies", {
              path: { pool },
              body: { name: name.trim(), ...change },
            });
          }
          onClose();
        }}
      >
        {!of && <TextField label="Name" value={name} onChange={setName} autoFocus />}
        <SelectField
          label="Service level"
          value={figures.level as "1"}
          options={LEVELS as readonly (readonly ["1", string])[]}
          onChange={set("level")}
        />
        <TextField
          label="Minimum IOPS"
          value={figures.minIops}
          onChange={set("minIops")}
          hint="Guaranteed; empty: none"
        />
        <TextField
          label="Minimum bandwidth"
          value={figures.minBandwidth}
          onChange={set("minBandwidth")}
          hint="Bytes per second, for example 200M"
        />
        <TextField
          label="Maximum latency"
          value={figures.maxLatency}
          onChange={set("maxLatency")}
          hint="p99 in milliseconds"
        />
        <TextField label="Maximum IOPS" value={figures.maxIops} onChange={set("maxIops")} />
        <TextField label="Maximum bandwidth" value={figures.maxBandwidth} onChange={set("maxBandwidth")} />
        <TextField
          label="Weight"
          value={figures.weight}
          onChange={set("weight")}
          hint="Share of the remaining capacity, 1 to 10,000"
        />
        <SelectField
          label="Promotion"
          value={figures.reaction as "normal"}
          options={REACTIONS as readonly (readonly ["normal", string])[]}
          onChange={set("reaction")}
        />
        <TextField
          label="Fast floor"
          value={figures.fastFloor}
          onChange={set("fastFloor")}
          hint="Guaranteed fast-tier space of each volume, for example 200G"
        />
        <TextField
          label="RAM share"
          value={figures.ramShare}
          onChange={set("ramShare")}
          hint="Guaranteed percentage of the RAM cache, at most 75"
        />
        {of && (
          <CheckField
            label="Even if the pool cannot meet all minimums (overcommit)"
            checked={overcommit}
            onChange={setOvercommit}
          />
        )}
      </Form>
    </Dialog>
  );
}
