import { expect, test } from "vitest";
import { EMPTY, requestOf } from "./targets";

test("a webhook has an address, and a secret only where there is one", () => {
  const form = { ...EMPTY, name: "ops", url: " https://example.com/x " };
  const to = { kind: "webhook", url: "https://example.com/x", secret: null };
  expect(requestOf(form)).toEqual({ name: "ops", severity: "warning", ca: null, to });
  expect(requestOf({ ...form, secret: "s" })?.to).toMatchObject({ secret: "s" });
  expect(requestOf({ ...form, url: "example.com" })).toBeUndefined();
  expect(requestOf({ ...form, name: "" })).toBeUndefined();
});

test("mail has a server, a sender and receivers, and a password only with a user", () => {
  const form = { ...EMPTY, name: "ops", kind: "email" as const, server: "m", from: "a@b", to: "c@d\n\n e@f" };
  expect(requestOf(form)?.to).toMatchObject({
    port: null,
    security: "starttls",
    user: null,
    to: ["c@d", "e@f"],
  });
  expect(requestOf({ ...form, port: "25" })?.to).toMatchObject({ port: 25 });
  for (const part of [
    { to: "" },
    { server: "" },
    { from: "" },
    { port: "x" },
    { user: "u" },
    { password: "p" },
  ]) {
    expect(requestOf({ ...form, ...part }), JSON.stringify(part)).toBeUndefined();
  }
});
