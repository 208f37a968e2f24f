import { useState } from "react";
import { api } from "../../api/client";
import type { FrontEnd } from "../../api/types";
import { useData } from "../../live/useData";
import { go } from "../../router";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

async function look(signal: AbortSignal) {
  const [frontEnds, volumes, snapshots] = await Promise.all([
    api.get("/v1/frontends", { signal }),
    api.get("/v1/volumes", { signal }),
    api.get("/v1/snapshots", { query: { wait_s: 0 }, signal }),
  ]);
  return {
    frontEnds: frontEnds.items,
    volumes: volumes.items.map((volume) => `${volume.pool}/${volume.name}`),
    snapshots: snapshots.items.map(({ pool, volume, name }) => ({ of: `${pool}/${volume}`, name })),
  };
}

/** Suggested values of a protocol's required parameters. */
function suggestion(name: string, exportName: string): string {
  const of = exportName || "NAME";
  switch (name) {
    case "path":
      return `/run/convect/${of}.sock`;
    case "listen":
      return `unix:/run/convect/${of}.nbd`;
    case "portal":
      return "127.0.0.1:3260";
    case "mount":
      return "/mnt/convect";
    default:
      return "";
  }
}

interface FieldsProps {
  of: FrontEnd;
  name: string;
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
}

function ParameterFields({ of, name, values, onChange }: FieldsProps) {
  return of.parameters.map((parameter) => (
    <TextField
      key={`${of.name} ${parameter.name}`}
      label={parameter.name}
      hint={parameter.about}
      className="mono"
      value={values[parameter.name] ?? (parameter.required ? suggestion(parameter.name, name) : "")}
      onChange={(value) => onChange({ ...values, [parameter.name]: value })}
    />
  ));
}

export function CreateExport({ volume, onClose }: { volume?: string; onClose: () => void }) {
  const { value, error } = useData("front ends", look);
  const [chosen, setChosen] = useState(volume);
  const [kind, setKind] = useState("vhost-user-blk");
  const [name, setName] = useState(volume?.split("/")[1] ?? "");
  const [snapshot, setSnapshot] = useState("");
  const [writable, setWritable] = useState(false);
  const [initiator, setInitiator] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  if (!value) {
    return (
      <Dialog title="New export" onClose={onClose}>
        <p>{error ?? "…"}</p>
      </Dialog>
    );
  }
  const frontEnd = value.frontEnds.find((known) => known.name === kind) ?? value.frontEnds[0]!;
  const target = chosen ?? value.volumes[0] ?? "";
  const snapshots = value.snapshots.filter((known) => known.of === target);
  const parameters = Object.fromEntries(
    frontEnd.parameters
      .map((parameter) => {
        const usual = parameter.required ? suggestion(parameter.name, name) : "";
        return [parameter.name, (values[parameter.name] ?? usual).trim()] as const;
      })
      .filter(([, given]) => given !== ""),
  );
  return (
    <Dialog title="New export" onClose={onClose}>
      <Form
        action="Create export"
        disabled={name === "" || target === ""}
        onSubmit={async () => {
          const [pool = "", ...rest] = target.split("/");
          await api.post("/v1/exports", {
            body: {
              name,
              pool,
              volume: rest.join("/") + (snapshot && `@${snapshot}`),
              writable: snapshot !== "" && writable,
              kind: frontEnd.name,
              parameters,
              initiator: initiator.trim() || null,
            },
          });
          onClose();
          go("exports", name);
        }}
      >
        <TextField label="Name" value={name} onChange={setName} autoFocus />
        <SelectField
          label="Volume"
          value={target}
          options={value.volumes.map((known) => [known, known] as const)}
          onChange={(next) => {
            setChosen(next);
            setSnapshot("");
          }}
        />
        <SelectField
          label="By"
          value={frontEnd.name}
          options={value.frontEnds.map((known) => [known.name, `${known.name}: ${known.about}`] as const)}
          onChange={(next) => {
            setKind(next);
            setValues({});
          }}
        />
        <details>
          <summary>More</summary>
          <SelectField
            label="Content"
            value={snapshot}
            options={[
              ["", "current"] as const,
              ...snapshots.map((known) => [known.name, `snapshot ${known.name}`] as const),
            ]}
            onChange={setSnapshot}
          />
          {snapshot !== "" && (
            <CheckField
              label="Writable: export a clone with the export's name, which is kept when the export is deleted"
              checked={writable}
              onChange={setWritable}
            />
          )}
          <TextField
            label="Initiator"
            value={initiator}
            onChange={setInitiator}
            hint="Name of the initiator that uses this export, for volumes with bypassed initiators"
          />
        </details>
        <ParameterFields of={frontEnd} name={name} values={values} onChange={setValues} />
      </Form>
    </Dialog>
  );
}
