import { useState } from "react";
import { api } from "../../api/client";
import type { Session } from "../../api/types";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

/** A token is all that there is to log in with; there is no default one. */
export function LogIn({ onLogIn }: { onLogIn: (session: Session) => void }) {
  const [token, setToken] = useState("");
  return (
    <main className="login">
      <div className="login-box">
        <h1>
          <img src="/icon.svg" alt="" width="32" height="32" /> Convect
        </h1>
        <Form
          action="Log in"
          disabled={token.trim() === ""}
          onSubmit={async () => onLogIn(await api.post("/v1/login", { body: { token: token.trim() } }))}
        >
          <TextField
            label="Token"
            type="password"
            value={token}
            onChange={setToken}
            autoFocus
            className="mono"
            hint={
              <>
                Create one on the server with <code>convect token create NAME --role admin</code>
              </>
            }
          />
        </Form>
      </div>
    </main>
  );
}
