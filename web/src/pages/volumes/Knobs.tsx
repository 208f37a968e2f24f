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

/** What a volume may take of its pool, and what was chosen for its placement. */
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
        action="Change it"
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
            hint="The most that it and its snapshots may store"
          />
          <TextField
            label="Reservation"
            value={form.reservation}
            onChange={(reservation) => set({ reservation })}
            placeholder="none"
            hint="What the pool keeps for it"
          />
          <TextField
            label="Floor on the fast tier"
            value={form.fastFloor}
            onChange={(fastFloor) => set({ fastFloor })}
            placeholder="none"
            hint="Up to there others give way first"
          />
          <TextField
            label="Ceiling on the fast tier"
            value={form.fastCeiling}
            onChange={(fastCeiling) => set({ fastCeiling })}
            placeholder="none"
            hint="Beyond it nothing of it is promoted"
          />
          <TextField
            label="Promotion may write a day"
            value={form.writeBudget}
            onChange={(writeBudget) => set({ writeBudget })}
            placeholder="as much as is worth it"
            hint={budget ? `${bytes(budget.left)} left` : undefined}
          />
          <TextField
            label="Expected: operations a second"
            value={form.targetIops}
            onChange={(targetIops) => set({ targetIops })}
            placeholder="nothing"
            hint="An alert tells when it asks for them and gets less"
          />
          <TextField
            label="Expected: bytes a second"
            value={form.targetBandwidth}
            onChange={(targetBandwidth) => set({ targetBandwidth })}
            placeholder="nothing"
          />
          <TextField
            label="Expected: milliseconds"
            value={form.targetLatency}
            onChange={(targetLatency) => set({ targetLatency })}
            placeholder="nothing"
            hint="Within which 99 of 100 operations end"
          />
          <SelectField
            label="Reaction"
            value={form.reaction}
            options={REACTIONS}
            onChange={(reaction) => set({ reaction })}
          />
        </div>
        <CheckField
          label="Reads bring what is hot to the fast tier"
          checked={form.promotion}
          onChange={(promotion) => set({ promotion })}
        />
        <LinesField
          label="Initiators that placement does not hear of, one a line"
          rows={2}
          value={form.bypass}
          onChange={(bypass) => set({ bypass })}
        />
      </Form>
      <Pins of={of} />
    </>
  );
}
