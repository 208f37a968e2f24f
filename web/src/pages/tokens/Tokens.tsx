import { useState } from "react";
import { api } from "../../api/client";
import type { Role, Token, TokenMade } from "../../api/types";
import { parseSpan, time } from "../../format";
import { useData } from "../../live/useData";
import { Code } from "../../ui/Code";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { Page } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";

const ROLES: readonly (readonly [Role, string])[] = [
  ["viewer", "viewer: look"],
  ["operator", "operator: change volumes, snapshots and exports"],
  ["admin", "admin: change pools, drives and tokens, too"],
];

function CreateToken({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [lasts, setLasts] = useState("90d");
  const [made, setMade] = useState<TokenMade>();
  if (made) {
    return (
      <Dialog title={`Token ${made.token.name}`} onClose={onClose}>
        <p>The token is shown only once.</p>
        <Code label="Token secret" text={made.secret} />
        <footer className="form">
          <button type="button" className="primary" onClick={onClose}>
            I have saved it
          </button>
        </footer>
      </Dialog>
    );
  }
  const seconds = parseSpan(lasts);
  return (
    <Dialog title="New token" onClose={onClose}>
      <Form
        action="Create token"
        disabled={name === "" || seconds === undefined}
        onSubmit={async () =>
          setMade(await api.post("/v1/tokens", { body: { name, role, expires_in_s: seconds ?? null } }))
        }
      >
        <TextField label="Name" value={name} onChange={setName} autoFocus hint="Who or what it is for" />
        <SelectField label="Role" value={role} options={ROLES} onChange={setRole} />
        <TextField label="Valid for" value={lasts} onChange={setLasts} hint="For example 12h or 90d" />
      </Form>
    </Dialog>
  );
}

export function Tokens() {
  const { value, error } = useData("tokens", (signal) => api.get("/v1/tokens", { signal }));
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<Confirmation>();
  const columns: Column<Token>[] = [
    { name: "Token", width: "minmax(8rem, 2fr)", cell: (row) => <b>{row.name}</b> },
    { name: "Role", width: "7rem", cell: (row) => row.role },
    { name: "Made", width: "9.5rem", wide: true, cell: (row) => <time>{time(row.created_s)}</time> },
    {
      name: "Expires",
      width: "10.5rem",
      cell: (row) => <time className={row.expired ? "warn" : ""}>{time(row.expires_s)}</time>,
    },
    {
      name: "",
      width: "6rem",
      right: true,
      cell: (row) => (
        <button
          type="button"
          className="small"
          aria-label={`Revoke ${row.name}`}
          onClick={() =>
            setRevoking({
              title: `Revoke ${row.name}`,
              what: "It is no longer accepted, and its sessions are ended.",
              name: row.name,
              action: "Revoke token",
              run: () => api.delete("/v1/tokens/{token}", { path: { token: row.name } }),
            })
          }
        >
          Revoke
        </button>
      ),
    },
  ];
  return (
    <Page
      title="Tokens"
      error={error}
      about="Credentials of people and programs for access over the network."
      actions={
        <button type="button" className="primary" onClick={() => setMaking(true)}>
          New token
        </button>
      }
    >
      <Table
        label="Tokens"
        columns={columns}
        rows={value?.items ?? []}
        rowKey={(row) => row.name}
        empty="No tokens."
      />
      {making && <CreateToken onClose={() => setMaking(false)} />}
      {revoking && <Confirm of={revoking} onClose={() => setRevoking(undefined)} />}
    </Page>
  );
}
