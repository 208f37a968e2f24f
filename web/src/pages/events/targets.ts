// Notification targets, as form data. Pure.
import type { TargetCreate } from "../../api/types";

export interface TargetForm {
  name: string;
  severity: "info" | "warning" | "critical";
  kind: "webhook" | "email";
  url: string;
  secret: string;
  server: string;
  security: "starttls" | "tls" | "plain";
  port: string;
  user: string;
  password: string;
  from: string;
  to: string;
  ca: string;
}

export const EMPTY: TargetForm = {
  name: "",
  severity: "warning",
  kind: "webhook",
  url: "",
  secret: "",
  server: "",
  security: "starttls",
  port: "",
  user: "",
  password: "",
  from: "",
  to: "",
  ca: "",
};

function orNull(text: string): string | null {
  return text.trim() === "" ? null : text;
}

/** The request to the daemon; undefined while a field is missing. */
export function requestOf(form: TargetForm): TargetCreate | undefined {
  const { name, severity } = form;
  const ca = orNull(form.ca);
  if (name === "") return undefined;
  if (form.kind === "webhook") {
    const url = form.url.trim();
    if (!/^https?:\/\//.test(url)) return undefined;
    return { name, severity, ca, to: { kind: "webhook", url, secret: orNull(form.secret) } };
  }
  const to = form.to
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const port = form.port.trim();
  const ready = form.server.trim() !== "" && form.from.trim() !== "" && to.length > 0;
  // A password without a user, or the other way round, is half of what is needed.
  const both = (form.user === "") === (form.password === "");
  if (!ready || !both || !/^\d{0,5}$/.test(port)) return undefined;
  return {
    name,
    severity,
    ca,
    to: {
      kind: "email",
      server: form.server.trim(),
      port: port === "" ? null : Number(port),
      security: form.security,
      user: orNull(form.user),
      password: orNull(form.password),
      from: form.from.trim(),
      to,
    },
  };
}
