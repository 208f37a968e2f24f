import { useState } from "react";
import { api } from "../../api/client";
import type { QosGroup, QosPolicy } from "../../api/types";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { choiceOf, choicesOf } from "./policies";

interface Props {
  pool: string;
  volumes: string[];
  policies: QosPolicy[];
  groups: QosGroup[];
  onClose: () => void;
}

/** Gives a volume a policy of its own or that of a group, or takes it away. */
export function GivePolicy({ pool, volumes, policies, groups, onClose }: Props) {
  const [volume, setVolume] = useState(volumes[0] ?? "");
  const [chosen, setChosen] = useState("policy none");
  const [overcommit, setOvercommit] = useState(false);
  return (
    <Dialog title={`Policy of a volume of ${pool}`} onClose={onClose}>
      <Form
        action="Set policy"
        disabled={volume === ""}
        onSubmit={async () => {
          await api.put("/v1/volumes/{pool}/{volume}", {
            path: { pool, volume },
            body: { ...choiceOf(chosen), overcommit },
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
          value={chosen}
          options={choicesOf(policies, groups)}
          onChange={setChosen}
        />
        <CheckField
          label="Even if the pool cannot meet all minimums (overcommit)"
          checked={overcommit}
          onChange={setOvercommit}
        />
      </Form>
    </Dialog>
  );
}
