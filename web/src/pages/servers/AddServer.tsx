import { useState } from "react";
import { api } from "../../api/client";
import { Dialog } from "../../ui/Dialog";
import { LinesField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

const WAYS = [
  ["pin", "fingerprint"],
  ["ca", "signed by a CA"],
] as const;

/** Another daemon that is to be examined from here. */
export function AddServer({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [url, setUrl] = useState("https://");
  const [way, setWay] = useState<"pin" | "ca">("pin");
  const [pin, setPin] = useState("");
  const [ca, setCa] = useState("");
  const [token, setToken] = useState("");
  const known = way === "pin" ? pin : ca;
  return (
    <Dialog title="Add a server" onClose={onClose}>
      <Form
        action="Add server"
        disabled={name === "" || !/^https:\/\/./.test(url) || known.trim() === "" || token.trim() === ""}
        onSubmit={async () => {
          await api.post("/v1/servers", {
            body: {
              name,
              url: url.trim(),
              pin: way === "pin" ? pin.trim() : null,
              ca: way === "ca" ? ca : null,
              token: token.trim(),
            },
          });
          onClose();
        }}
      >
        <TextField label="Name" value={name} onChange={setName} autoFocus />
        <TextField label="Address" value={url} onChange={setUrl} className="mono" hint="https://HOST:PORT" />
        <SelectField label="Verify its certificate by" value={way} options={WAYS} onChange={setWay} />
        {way === "pin" ? (
          <TextField
            label="Fingerprint"
            value={pin}
            onChange={setPin}
            className="mono"
            placeholder="sha256:…"
            hint="Printed in the other daemon's log at its start"
          />
        ) : (
          <LinesField label="CA certificates (PEM)" value={ca} onChange={setCa} />
        )}
        <TextField
          label="Access token"
          type="password"
          value={token}
          onChange={setToken}
          hint="Of the other server; the role viewer suffices. It is stored by this daemon and never shown"
        />
      </Form>
    </Dialog>
  );
}
