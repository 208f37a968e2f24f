import { useState } from "react";
import { api } from "../../api/client";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

interface Props {
  pool: string;
  volumes: string[];
  onClose: () => void;
}

export function TakeSnapshot({ pool, volumes, onClose }: Props) {
  const [name, setName] = useState("");
  return (
    <Dialog
      title={`Take a snapshot of ${volumes.map((volume) => `${pool}/${volume}`).join(", ")}`}
      onClose={onClose}
    >
      <Form
        action="Take snapshot"
        disabled={name === ""}
        onSubmit={async () => {
          await api.post("/v1/snapshots", { body: { pool, volumes, name } });
          onClose();
        }}
      >
        <TextField label="Name" value={name} onChange={setName} autoFocus />
      </Form>
    </Dialog>
  );
}
