import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { bytes, parseBytes } from "../../format";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

/** A new size; a smaller one requests the name, as what is beyond is lost. */
export function Resize({ of, onClose }: { of: Volume; onClose: () => void }) {
  const name = `${of.pool}/${of.name}`;
  const [size, setSize] = useState(bytes(of.size));
  const [typed, setTyped] = useState("");
  const wanted = parseBytes(size);
  const shrinks = wanted !== undefined && wanted < of.size;
  return (
    <Dialog title={`Resize ${name}`} onClose={onClose}>
      <Form
        action={shrinks ? "Shrink volume" : "Resize volume"}
        danger={shrinks}
        disabled={wanted === undefined || wanted === of.size || (shrinks && typed.trim() !== name)}
        onSubmit={async () => {
          if (wanted === undefined) return;
          await api.post("/v1/volumes/{pool}/{volume}/resize", {
            path: { pool: of.pool, volume: of.name },
            body: { size: wanted, shrink: shrinks },
          });
          onClose();
        }}
      >
        <TextField
          label="New size"
          value={size}
          onChange={setSize}
          autoFocus
          hint={`Current size: ${bytes(of.size)}`}
        />
        {shrinks && (
          <TextField
            label={`Data beyond ${size} is lost: type ${name} to confirm`}
            value={typed}
            onChange={setTyped}
            className="mono"
          />
        )}
      </Form>
    </Dialog>
  );
}
