import { useState } from "react";
import { api } from "../../api/client";
import type { Drive } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { CheckField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

/** Brings a drive back into its mirrors. */
export function BringOnline({ pool, drive, onClose }: { pool: string; drive: Drive; onClose: () => void }) {
  const [force, setForce] = useState(false);
  const [typed, setTyped] = useState("");
  return (
    <Dialog title={`Bring ${drive.spec} online`} onClose={onClose}>
      <Form
        action="Bring online"
        danger={force}
        disabled={force && typed.trim() !== pool}
        onSubmit={async () => {
          const body = { drive: drive.id, force };
          await api.post("/v1/pools/{pool}/drives/online", { path: { pool }, body });
          onClose();
        }}
      >
        <p>The data that it lacks is resynced from the other drives of its mirrors.</p>
        <CheckField
          label="It was used separately from the pool's other drives: overwrite all of it"
          checked={force}
          onChange={setForce}
        />
        {force && <TextField label={`Type ${pool} to confirm`} value={typed} onChange={setTyped} />}
      </Form>
    </Dialog>
  );
}
