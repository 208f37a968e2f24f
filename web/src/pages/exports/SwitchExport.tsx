import { useState } from "react";
import { api } from "../../api/client";
import type { Export } from "../../api/types";
import { many } from "../../format";
import { Dialog } from "../../ui/Dialog";
import { CheckField } from "../../ui/Field";
import { Form } from "../../ui/Form";

/** Disables an export, or enables it again. */
export function SwitchExport({ of, onClose }: { of: Export; onClose: () => void }) {
  const enables = of.state === "disabled";
  const [force, setForce] = useState(false);
  const path = { export: of.name };
  const run = () =>
    enables
      ? api.post("/v1/exports/{export}/enable", { path, query: { pool: of.pool } })
      : api.post("/v1/exports/{export}/disable", { path, query: { pool: of.pool, force } });
  return (
    <Dialog title={`${enables ? "Enable" : "Disable"} ${of.name}`} onClose={onClose}>
      <Form
        action={enables ? "Enable export" : "Disable export"}
        onSubmit={async () => {
          await run();
          onClose();
        }}
      >
        <p>
          {enables
            ? "Hosts can use it again, at the same address."
            : "It keeps its parameters, but hosts cannot use it until it is enabled again."}
        </p>
        {!enables && of.sessions > 0 && (
          <CheckField
            label={`Disconnect ${many(of.sessions, "session")}`}
            checked={force}
            onChange={setForce}
          />
        )}
      </Form>
    </Dialog>
  );
}
