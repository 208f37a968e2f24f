import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { bytes } from "../../format";
import { useMay } from "../../session";
import { CheckField, LinesField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Pins } from "./Pins";
import { changeOf, knobsOf, type KnobForm } from "./knobs";

const REACTIONS = [
  ["eager", "eager: more is promoted"],
  ["normal", "normal"],
  ["thrifty", "thrifty: less is promoted"],
] as const;

/** Quota, reservation and placement settings of a volume. */
export function Knobs({ of }: { of: Volume }) {
  const before = knobsOf(of);
  const [form, setForm] = useState(before);
  const operator = useMay("operator");
  const set = (part: Partial<KnobForm>) => setForm({ ...form, ...part });
  const change = changeOf(before, form);
  const path = { pool: of.pool, volume: of.name };
  const budget = of.placement?.write_budget;
  return (
    <>
      <Form
        action="Save changes"
        disabled={!operator || change === undefined || Object.keys(change).length === 0}
        onSubmit={async () => {
          if (change) await api.put("/v1/volumes/{pool}/{volume}", { path, body: change });
        }}
      >
        <div className="grid">
          <TextField
            label="Quota"
            value={form.quota}
            onChange={(quota) => set({ quota })}
            placeholder="none"
            hint="Maximum space of the volume and its snapshots"
          />
          <TextField
            label="Reservation"
            value={form.reservation}
            onChange={(reservation) => set({ reservation })}
            placeholder="none"
            hint="Space guaranteed to the volume"
          />
          <TextField
            label="Guaranteed fast-tier space"
            value={form.fastFloor}
            onChange={(fastFloor) => set({ fastFloor })}
            placeholder="none"
            hint="Other volumes' data is evicted first"
          />
          <TextField
            label="Maximum fast-tier space"
            value={form.fastCeiling}
            onChange={(fastCeiling) => set({ fastCeiling })}
            placeholder="none"
            hint="Nothing is promoted beyond it"
          />
          <TextField
            label="Promotion budget per day"
            value={form.writeBudget}
            onChange={(writeBudget) => set({ writeBudget })}
            placeholder="unlimited"
            hint={budget ? `${bytes(budget.left)} left` : undefined}
          />
          <TextField
            label="Target: IOPS"
            value={form.targetIops}
            onChange={(targetIops) => set({ targetIops })}
            placeholder="nothing"
            hint="An alert is raised when the volume needs them and gets less"
          />
          <TextField
            label="Target: bytes per second"
            value={form.targetBandwidth}
            onChange={(targetBandwidth) => set({ targetBandwidth })}
            placeholder="nothing"
          />
          <TextField
            label="Target: latency in milliseconds"
            value={form.targetLatency}
            onChange={(targetLatency) => set({ targetLatency })}
            placeholder="nothing"
            hint="p99 of all operations"
          />
          <SelectField
            label="Reaction"
            value={form.reaction}
            options={REACTIONS}
            onChange={(reaction) => set({ reaction })}
          />
        </div>
        <CheckField
          label="Promote hot data on reads"
          checked={form.promotion}
          onChange={(promotion) => set({ promotion })}
        />
        <LinesField
          label="Bypassed initiators, one per line (ignored by placement)"
          rows={2}
          value={form.bypass}
          onChange={(bypass) => set({ bypass })}
        />
      </Form>
      <Pins of={of} />
    </>
  );
}
