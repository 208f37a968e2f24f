import { useState } from "react";
import { api } from "../../api/client";
import type { Tier } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { CheckField, LinesField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { FreeDrives } from "./FreeDrives";
import { CHUNK, LAYOUTS, layout, lines, type LayoutName } from "./layouts";

export function AddVdrive({ pool, tier, onClose }: { pool: string; tier: Tier; onClose: () => void }) {
  const [drives, setDrives] = useState("");
  const [chosen, setChosen] = useState<LayoutName>("mirror");
  const [chunk, setChunk] = useState(CHUNK);
  const [force, setForce] = useState(false);
  const [typed, setTyped] = useState("");
  const wanted = layout(chosen, chunk);
  return (
    <Dialog title={`Add to the ${tier} tier of ${pool}`} onClose={onClose}>
      <Form
        action="Add vdrive"
        danger={force}
        disabled={!wanted || lines(drives).length === 0 || (force && typed.trim() !== pool)}
        onSubmit={async () => {
          if (!wanted) return;
          const body = { tier, layout: wanted, drives: lines(drives), force };
          await api.post("/v1/pools/{pool}/vdrives", { path: { pool }, body });
          onClose();
        }}
      >
        <LinesField label="Drives, one per line" value={drives} onChange={setDrives} />
        <FreeDrives
          chosen={lines(drives)}
          onPick={(spec) => setDrives([...lines(drives), spec].join("\n"))}
        />
        <SelectField label="Layout" value={chosen} options={LAYOUTS} onChange={setChosen} />
        {chosen === "stripe" && <TextField label="Chunk" value={chunk} onChange={setChunk} />}
        <CheckField
          label="Overwrite drives that contain data (destroys it)"
          checked={force}
          onChange={setForce}
        />
        {force && <TextField label={`Type ${pool} to confirm`} value={typed} onChange={setTyped} />}
      </Form>
    </Dialog>
  );
}
