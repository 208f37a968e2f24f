import { useState } from "react";
import { api } from "../../api/client";
import type { Layout, Tier } from "../../api/types";
import { CheckField, LinesField, SelectField, TextField } from "../../ui/Field";
import { Dialog } from "../../ui/Dialog";
import { Form } from "../../ui/Form";
import { FreeDrives } from "./FreeDrives";
import { CHUNK, LAYOUTS, layout, lines, type LayoutName } from "./layouts";

const POLICIES = [
  ["slow_first", "is written back to the slow tier soon"],
  ["fast_first", "stays on the fast tier until its space is needed"],
] as const;
type Policy = (typeof POLICIES)[number][0];

interface Side {
  layout: LayoutName;
  chunk: string;
  drives: string;
}

function vdrive(tier: Tier, side: Side): { tier: Tier; layout: Layout; drives: string[] }[] {
  const drives = lines(side.drives);
  const wanted = layout(side.layout, side.chunk);
  return drives.length === 0 || !wanted ? [] : [{ tier, layout: wanted, drives }];
}

/** Drives of one tier, typed or picked. */
function TierFields({ tier, side, onChange }: { tier: Tier; side: Side; onChange: (side: Side) => void }) {
  const name = tier === "fast" ? "Fast drives" : "Slow drives";
  return (
    <fieldset className={`tier ${tier}`}>
      <legend>{name}</legend>
      <LinesField
        label={`${name}, one per line`}
        rows={2}
        value={side.drives}
        placeholder={tier === "fast" ? "/dev/nvme0n1" : "/dev/sda"}
        onChange={(drives) => onChange({ ...side, drives })}
      />
      <FreeDrives
        chosen={lines(side.drives)}
        onPick={(spec) => onChange({ ...side, drives: [...lines(side.drives), spec].join("\n") })}
      />
      <SelectField
        label={`Layout of the ${tier} tier`}
        value={side.layout}
        options={LAYOUTS}
        onChange={(chosen) => onChange({ ...side, layout: chosen })}
      />
      {side.layout === "stripe" && (
        <TextField
          label={`Chunk of the ${tier} tier`}
          value={side.chunk}
          onChange={(chunk) => onChange({ ...side, chunk })}
        />
      )}
    </fieldset>
  );
}

export function CreatePool({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("tank");
  const [fast, setFast] = useState<Side>({ layout: "mirror", chunk: CHUNK, drives: "" });
  const [slow, setSlow] = useState<Side>({ layout: "mirror", chunk: CHUNK, drives: "" });
  const [policy, setPolicy] = useState<Policy>("slow_first");
  const [shards, setShards] = useState("");
  const [unmirrored, setUnmirrored] = useState(false);
  const [force, setForce] = useState(false);
  const [typed, setTyped] = useState("");
  const [fastDrives, slowDrives] = [lines(fast.drives), lines(slow.drives)];
  const risky = fastDrives.length > 0 && slowDrives.length > 0 && fast.layout !== "mirror";
  const tooFew = [
    { side: fast, drives: fastDrives },
    { side: slow, drives: slowDrives },
  ].some(({ side, drives }) => side.layout === "mirror" && drives.length === 1);
  const ready =
    name !== "" &&
    /^\d*$/.test(shards.trim()) &&
    [fast, slow].every((side) => layout(side.layout, side.chunk)) &&
    fastDrives.length + slowDrives.length > 0 &&
    !tooFew &&
    (!force || typed.trim() === name);
  return (
    <Dialog title="New pool" onClose={onClose} wide>
      <Form
        action="Create pool"
        danger={force}
        disabled={!ready}
        onSubmit={async () => {
          const vdrives = [...vdrive("fast", fast), ...vdrive("slow", slow)];
          await api.post("/v1/pools", {
            body: {
              name,
              vdrives,
              policy,
              shards: Number(shards),
              force,
              accept_unmirrored: risky && unmirrored,
            },
          });
          onClose();
        }}
      >
        <TextField label="Name" value={name} onChange={setName} autoFocus />
        <div className="columns">
          <TierFields tier="fast" side={fast} onChange={setFast} />
          <TierFields tier="slow" side={slow} onChange={setSlow} />
        </div>
        {tooFew && <p className="hint">A mirror needs two or three drives.</p>}
        {risky && (
          <CheckField
            label="Accept an unmirrored fast tier: data is lost if a fast drive fails"
            checked={unmirrored}
            onChange={setUnmirrored}
          />
        )}
        <details>
          <summary>More</summary>
          <SelectField label="Written data" value={policy} options={POLICIES} onChange={setPolicy} />
          <TextField
            label="Shards"
            value={shards}
            onChange={setShards}
            inputMode="numeric"
            placeholder="one per core"
            hint="Single-threaded engines; they cannot be changed later"
          />
        </details>
        <CheckField
          label="Overwrite drives that contain data (destroys it)"
          checked={force}
          onChange={setForce}
        />
        {force && (
          <TextField
            label={`All data on the drives is lost: type ${name} to confirm`}
            value={typed}
            onChange={setTyped}
          />
        )}
      </Form>
    </Dialog>
  );
}
