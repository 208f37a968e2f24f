import { useState } from "react";
import { api } from "../../api/client";
import { Dialog } from "../../ui/Dialog";
import { LinesField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { EMPTY, requestOf, type TargetForm } from "./targets";

const KINDS = [
  ["webhook", "webhook: a POST of JSON for each event"],
  ["email", "e-mail"],
] as const;
const SEVERITIES = [
  ["info", "all of them"],
  ["warning", "warnings and what is critical"],
  ["critical", "what is critical"],
] as const;
const SECURITIES = [
  ["starttls", "STARTTLS"],
  ["tls", "TLS from the beginning"],
  ["plain", "none: on this host alone"],
] as const;

/** Somebody who is to be told of events from now on. */
export function CreateTarget({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useState(EMPTY);
  const set = (part: Partial<TargetForm>) => setForm({ ...form, ...part });
  const request = requestOf(form);
  return (
    <Dialog title="New target" onClose={onClose}>
      <Form
        action="Make the target"
        disabled={request === undefined}
        onSubmit={async () => {
          if (!request) return;
          await api.post("/v1/targets", { body: request });
          onClose();
        }}
      >
        <TextField label="Name" value={form.name} onChange={(name) => set({ name })} autoFocus />
        <SelectField
          label="Of which events"
          value={form.severity}
          options={SEVERITIES}
          onChange={(severity) => set({ severity })}
        />
        <SelectField label="By" value={form.kind} options={KINDS} onChange={(kind) => set({ kind })} />
        {form.kind === "webhook" ? (
          <>
            <TextField
              label="Address"
              value={form.url}
              onChange={(url) => set({ url })}
              placeholder="https://example.com/alerts"
              className="mono"
            />
            <TextField
              label="Requests are signed with"
              type="password"
              value={form.secret}
              onChange={(secret) => set({ secret })}
              hint="A secret that the receiver knows, too (HMAC-SHA256)"
            />
          </>
        ) : (
          <>
            <div className="grid">
              <TextField label="Mail server" value={form.server} onChange={(server) => set({ server })} />
              <SelectField
                label="Security"
                value={form.security}
                options={SECURITIES}
                onChange={(security) => set({ security })}
              />
              <TextField
                label="Port"
                value={form.port}
                onChange={(port) => set({ port })}
                placeholder="the usual one"
                inputMode="numeric"
              />
              <TextField label="User" value={form.user} onChange={(user) => set({ user })} />
              <TextField
                label="Password"
                type="password"
                value={form.password}
                onChange={(password) => set({ password })}
              />
              <TextField label="Sender" value={form.from} onChange={(from) => set({ from })} />
            </div>
            <LinesField
              label="Receivers, one a line"
              rows={2}
              value={form.to}
              onChange={(to) => set({ to })}
            />
          </>
        )}
        <details>
          <summary>More</summary>
          <LinesField
            label="Certificates that it is trusted by besides the system's, as PEM"
            value={form.ca}
            onChange={(ca) => set({ ca })}
          />
        </details>
      </Form>
    </Dialog>
  );
}
