import { useState } from "react";
import { api } from "../../api/client";
import type { QosGroup, QosPolicy } from "../../api/types";
import { count } from "../../format";
import { useMay } from "../../session";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Card } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";
import { guaranteed, met, timeGoesTo } from "./policies";

interface EditProps {
  pool: string;
  policies: QosPolicy[];
  /** The group that gets another policy; none when one is created. */
  of?: QosGroup | undefined;
  onClose: () => void;
}

/** A new group, or another policy of one. */
function EditGroup({ pool, policies, of, onClose }: EditProps) {
  const [name, setName] = useState("");
  const [policy, setPolicy] = useState(of?.qos?.policy.name ?? policies[0]?.name ?? "");
  const [overcommit, setOvercommit] = useState(false);
  return (
    <Dialog title={of ? `Policy of ${pool}/${of.name}` : `New group of ${pool}`} onClose={onClose}>
      <Form
        action={of ? "Save changes" : "Create group"}
        disabled={policy === "" || (!of && name.trim() === "")}
        onSubmit={async () => {
          if (of) {
            await api.put("/v1/pools/{pool}/qos/groups/{group}", {
              path: { pool, group: of.name },
              body: { policy, overcommit },
            });
          } else {
            await api.post("/v1/pools/{pool}/qos/groups", {
              path: { pool },
              body: { name: name.trim(), policy, overcommit },
            });
          }
          onClose();
        }}
      >
        {!of && <TextField label="Name" value={name} onChange={setName} autoFocus />}
        <SelectField
          label="Policy"
          value={policy}
          options={policies.map((known) => [known.name, `${known.name} (${guaranteed(known)})`] as const)}
          onChange={setPolicy}
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

/** Groups of volumes that share a policy, and what each attains together. */
export function Groups({
  pool,
  groups,
  policies,
}: {
  pool: string;
  groups: QosGroup[];
  policies: QosPolicy[];
}) {
  const operator = useMay("operator");
  const [edited, setEdited] = useState<{ of?: QosGroup }>();
  const [confirm, setConfirm] = useState<Confirmation>();
  const columns: Column<QosGroup>[] = [
    { name: "Group", width: "minmax(7rem, 1fr)", cell: (row) => row.name },
    { name: "Policy", width: "minmax(8rem, 1fr)", cell: (row) => row.qos?.policy.name ?? "–" },
    { name: "Volumes", width: "5rem", right: true, cell: (row) => row.volumes.length },
    {
      name: "Guaranteed to the group",
      width: "minmax(6rem, 2fr)",
      wide: true,
      cell: (row) => (row.qos ? guaranteed(row.qos.policy) : "–"),
    },
    { name: "IOPS", width: "5rem", right: true, cell: (row) => count(row.qos?.iops ?? 0) },
    { name: "Met", width: "5rem", right: true, cell: (row) => (row.qos ? met(row.qos) : "–") },
    {
      name: "Bottleneck",
      width: "minmax(8rem, 1fr)",
      wide: true,
      cell: (row) => (row.qos ? timeGoesTo(row.qos) : "–"),
    },
  ];
  if (operator) {
    columns.push({
      name: "",
      width: "10rem",
      right: true,
      cell: (row) => (
        <>
          <button
            type="button"
            className="small"
            aria-label={`Change group ${row.name}`}
            onClick={() => setEdited({ of: row })}
          >
            Change
          </button>{" "}
          <button
            type="button"
            className="small"
            aria-label={`Delete group ${row.name}`}
            onClick={() =>
              setConfirm({
                title: `Delete ${pool}/${row.name}`,
                what: "The group must not contain any volumes.",
                name: row.name,
                action: "Delete group",
                run: () =>
                  api.delete("/v1/pools/{pool}/qos/groups/{group}", {
                    path: { pool, group: row.name },
                  }),
              })
            }
          >
            Delete
          </button>
        </>
      ),
    });
  }
  const actions = operator && (
    <button type="button" onClick={() => setEdited({})}>
      New group
    </button>
  );
  return (
    <Card title="Groups" actions={actions}>
      <Table label="Groups" columns={columns} rows={groups} rowKey={(row) => row.name} empty="No groups." />
      {edited && (
        <EditGroup pool={pool} policies={policies} of={edited.of} onClose={() => setEdited(undefined)} />
      )}
      {confirm && <Confirm of={confirm} onClose={() => setConfirm(undefined)} />}
    </Card>
  );
}
