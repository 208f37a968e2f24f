import { useState } from "react";
import { api } from "../../api/client";
import type { Snapshot } from "../../api/types";
import { go } from "../../router";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

export function CloneSnapshot({ of, onClose }: { of: Snapshot; onClose: () => void }) {
  const [name, setName] = useState("");
  const { pool, volume } = of;
  return (
    <Dialog title={`Clone ${pool}/${volume}@${of.name}`} onClose={onClose}>
      <Form
        action="Create clone"
        disabled={name === ""}
        onSubmit={async () => {
          const path = { pool, volume, snapshot: of.name };
          await api.post("/v1/snapshots/{pool}/{volume}/{snapshot}/clone", { path, body: { name } });
          onClose();
          go("volumes", pool, name);
        }}
      >
        <p>A volume with the content of the snapshot; only new writes use space.</p>
        <TextField label="Name" value={name} onChange={setName} autoFocus />
      </Form>
    </Dialog>
  );
}
