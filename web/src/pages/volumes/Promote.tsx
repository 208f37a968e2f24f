import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { Form } from "../../ui/Form";

/** Gives a clone the snapshots that it is based on. */
export function Promote({ of, onClose }: { of: Volume; onClose: () => void }) {
  const [told, setTold] = useState<string>();
  const path = { pool: of.pool, volume: of.name };
  if (told !== undefined) {
    return (
      <Dialog title={`${of.pool}/${of.name} was promoted`} onClose={onClose}>
        <p>{told}</p>
      </Dialog>
    );
  }
  return (
    <Dialog title={`Promote ${of.pool}/${of.name}`} onClose={onClose}>
      <Form
        action="Promote clone"
        onSubmit={async () => {
          const done = await api.post("/v1/volumes/{pool}/{volume}/promote", { path });
          setTold(
            `The volume now has the snapshots ${done.snapshots.join(", ")} of ${of.pool}/${done.parent}.`,
          );
        }}
      >
        <p>
          Swap a clone with its origin: it takes over its origin snapshot and those before it, so that the
          original volume becomes its clone and can be deleted. No data is copied.
        </p>
      </Form>
    </Dialog>
  );
}
