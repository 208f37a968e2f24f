import { useState } from "react";
import { api } from "../../api/client";
import { Dialog } from "../../ui/Dialog";
import { LinesField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { EMPTY, requestOf, type TargetForm } from "./targets";

const KINDS = [
  ["webhook", "webhook: an HTTP POST with JSON per event"],
  ["email", "e-mail"],
] as const;
const SEVERITIES = [
  ["info", "all"],
  ["warning", "warning and critical"],
  ["critical", "critical only"],
] as const;
const SECURITIES = [
  ["starttls", "STARTTLS"],
  ["tls", "implicit TLS"],
  ["plain", "none (only on this host)"],
] as const;

/** Dialog for a new notification target. */
export function CreateTarget({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useState(EMPTY);
  const set = (part: Partial<TargetForm>) => setForm({ ...form, ...part });
  const request = requestOf(form);
  return (
    <Dialog title="New target" onClose={onClose}>
      <Form
        action="Create target"
        disabled={request === undefined}
        onSubmit={async () => {
          if (!request) return;
          await api.post("/v1/targets", { body: request });
          onClose();
        }}
      >
        <TextField label="Name" value={form.name} onChange={(name) => set({ name })} autoFocus />
        <SelectField
          label="Severity"
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
              label="Signing secret"
              type="password"
              value={form.secret}
              onChange={(secret) => set({ secret })}
              hint="HMAC-SHA256 key that the receiver also has"
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
                placeholder="default"
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
              label="Recipients, one per line"
              rows={2}
              value={form.to}
              onChange={(to) => set({ to })}
            />
          </>
        )}
        <details>
          <summary>More</summary>
          <LinesField
            label="Additional CA certificates (PEM)"
            value={form.ca}
            onChange={(ca) => set({ ca })}
          />
        </details>
      </Form>
    </Dialog>
  );
}
