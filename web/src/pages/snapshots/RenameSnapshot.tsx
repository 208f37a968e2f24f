import { useState } from "react";
import { api } from "../../api/client";
import type { Snapshot } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

export function RenameSnapshot({ of, onClose }: { of: Snapshot; onClose: () => void }) {
  const [name, setName] = useState(of.name);
  const path = { pool: of.pool, volume: of.volume, snapshot: of.name };
  return (
    <Dialog title={`Rename ${of.pool}/${of.volume}@${of.name}`} onClose={onClose}>
      <Form
        action="Rename snapshot"
        disabled={name.trim() === "" || name === of.name}
        onSubmit={async () => {
          await api.put("/v1/snapshots/{pool}/{volume}/{snapshot}", { path, body: { name } });
          onClose();
        }}
      >
        <TextField
          label="New name"
          value={name}
          onChange={setName}
          autoFocus
          {...(of.schedule ? { hint: `The schedule ${of.schedule} will no longer delete it` } : {})}
        />
      </Form>
    </Dialog>
  );
}
