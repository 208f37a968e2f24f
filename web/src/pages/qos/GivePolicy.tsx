import { useState } from "react";
import { api } from "../../api/client";
import type { QosPolicy } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { guaranteed } from "./policies";

interface Props {
  pool: string;
  volumes: string[];
  policies: QosPolicy[];
  onClose: () => void;
}

/** Gives a volume a policy, or takes it away. */
export function GivePolicy({ pool, volumes, policies, onClose }: Props) {
  const [volume, setVolume] = useState(volumes[0] ?? "");
  const [policy, setPolicy] = useState("none");
  const [overcommit, setOvercommit] = useState(false);
  return (
    <Dialog title={`Policy of a volume of ${pool}`} onClose={onClose}>
      <Form
        action="Give it the policy"
        disabled={volume === ""}
        onSubmit={async () => {
          await api.put("/v1/volumes/{pool}/{volume}", {
            path: { pool, volume },
            body: { policy, overcommit },
          });
          onClose();
        }}
      >
        <SelectField
          label="Volume"
          value={volume}
          options={volumes.map((name) => [name, name] as const)}
          onChange={setVolume}
        />
        <SelectField
          label="Policy"
          value={policy}
          options={[
            ["none", "none"] as const,
            ...policies.map((known) => [known.name, `${known.name} (${guaranteed(known)})`] as const),
          ]}
          onChange={setPolicy}
        />
        <CheckField
          label="Also when the pool cannot keep all minimums then"
          checked={overcommit}
          onChange={setOvercommit}
        />
      </Form>
    </Dialog>
  );
}
