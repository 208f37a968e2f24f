import { useState } from "react";
import { api } from "../../api/client";
import type { Drive } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { CheckField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { FreeDrives } from "./FreeDrives";
import { lines } from "./layouts";

interface Props {
  pool: string;
  drive: Drive;
  onClose: () => void;
}

export function ReplaceDrive({ pool, drive, onClose }: Props) {
  const [spec, setSpec] = useState("");
  const [force, setForce] = useState(false);
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={`Replace ${drive.spec}`} onClose={onClose}>
      <Form
        action="Replace drive"
        danger={force}
        disabled={spec.trim() === "" || (force && typed.trim() !== pool)}
        onSubmit={async () => {
          const [fresh = ""] = lines(spec);
          const body = { old: drive.id, new: fresh, force };
          await api.post("/v1/pools/{pool}/drives/replace", { path: { pool }, body });
          onClose();
        }}
      >
        <TextField label="New drive, at least as large" value={spec} onChange={setSpec} autoFocus />
        <FreeDrives chosen={lines(spec)} onPick={setSpec} />
        <CheckField
          label="Overwrite the drive if it contains data (destroys it)"
          checked={force}
          onChange={setForce}
        />
        {force && <TextField label={`Type ${pool} to confirm`} value={typed} onChange={setTyped} />}
      </Form>
    </Dialog>
  );
}
