import { useState } from "react";
import { api } from "../../api/client";
import type { Export } from "../../api/types";
import { useData } from "../../live/useData";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { changed } from "./parameters";

/** Parameters of an export that change while hosts continue, as far as its front end can. */
export function ChangeExport({ of, onClose }: { of: Export; onClose: () => void }) {
  const { value } = useData("front ends alone", (signal) => api.get("/v1/frontends", { signal }));
  const parameters = value?.items.find((known) => known.name === of.kind)?.parameters ?? [];
  const [values, setValues] = useState<Record<string, string>>(of.parameters);
  const change = changed(of.parameters, values);
  return (
    <Dialog title={`Change ${of.name}`} onClose={onClose}>
      <Form
        action="Save changes"
        disabled={Object.keys(change).length === 0}
        onSubmit={async () => {
          await api.put("/v1/exports/{export}/parameters", {
            path: { export: of.name },
            query: { pool: of.pool },
            body: { parameters: change },
          });
          onClose();
        }}
      >
        <p>
          Hosts stay connected. Parameters that cannot be changed meanwhile are rejected; an empty field
          removes a value away.
        </p>
        {parameters.map((parameter) => (
          <TextField
            key={parameter.name}
            label={parameter.name}
            hint={parameter.about}
            className="mono"
            value={values[parameter.name] ?? ""}
            onChange={(now) => setValues({ ...values, [parameter.name]: now })}
          />
        ))}
      </Form>
    </Dialog>
  );
}
