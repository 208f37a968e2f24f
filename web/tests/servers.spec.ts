// Several daemons beside each other on the page of one.
import { X509Certificate } from "node:crypto";
import { Daemon } from "./daemon";
import { expect, logIn, test, THEMES, violations } from "./fixtures";

function fingerprint(daemon: Daemon): string {
  return new X509Certificate(daemon.read("state/certificate.pem")).fingerprint256;
}

test("another daemon is added by its fingerprint, seen beside this one, lost, and removed", async ({
  page,
  daemon,
}) => {
  const other = await Daemon.start();
  let stopped = false;
  try {
    other.fill();
    const token = other.token("viewer");
    await logIn(page, daemon, "admin");
    await page.goto(`${daemon.url}#/servers`);
    await expect(page.getByRole("region", { name: "This server" })).toContainText("No pools.");
    await page.getByRole("button", { name: "Add a server" }).click();
    await page.getByLabel("Name").fill("storage2");
    await page.getByLabel("Address").fill(other.url);
    await page.getByLabel("Fingerprint").fill(fingerprint(daemon));
    await page.getByLabel("Access token").fill(token);
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Add server" }).click();
    const card = page.getByRole("region", { name: "storage2" });
    await expect(card).toContainText("is not trusted: its certificate sha256:");
    await card.getByRole("button", { name: "Remove storage2" }).click();
    await page.getByLabel("Type storage2 to confirm").fill("storage2");
    await page.getByRole("button", { name: "Remove server" }).click();
    await expect(card).toHaveCount(0);

    await page.getByRole("button", { name: "Add a server" }).click();
    await page.getByLabel("Name").fill("storage2");
    await page.getByLabel("Address").fill(other.url);
    await page.getByLabel("Fingerprint").fill(fingerprint(other));
    await page.getByLabel("Access token").fill(token);
    await page.getByRole("button", { name: "Add server" }).click();
    await expect(card).toContainText("no problems");
    await expect(card).toContainText("tank");
    await expect(card.getByRole("link", { name: "Open its page" })).toHaveAttribute(
      "href",
      other.url.replace(/\/$/, ""),
    );
    await expect(card).toContainText(/\dIOPS, /);
    for (const [theme, which] of THEMES) {
      await page.emulateMedia({ colorScheme: theme });
      expect(await violations(page, which), theme).toEqual([]);
    }
    await page.setViewportSize({ width: 390, height: 780 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide).toBeLessThanOrEqual(390);
    // The browser asks its own daemon alone, and is never told the token.
    expect(await page.content()).not.toContain(token);
    await expect.poll(() => daemon.convect("server", "list")).toMatch(/storage2 +well/);
    expect(daemon.convect("server", "list", "--json") + daemon.convect("audit")).not.toContain(token);
    await other.stop();
    stopped = true;
    await expect(card).toContainText("unreachable");
    await expect(card).toContainText("no daemon responds at");
    await expect(card).toContainText("Last known state, from");
  } finally {
    if (!stopped) await other.stop();
  }
});

test("log-ins at two daemons of one host do not end each other", async ({ page, daemon }) => {
  const other = await Daemon.start();
  try {
    await logIn(page, daemon, "viewer");
    await logIn(page, other, "viewer");
    await page.goto(`${daemon.url}#/volumes`);
    await expect(page.getByRole("heading", { name: "Volumes" })).toBeVisible();
    await page.goto(`${other.url}#/volumes`);
    await expect(page.getByRole("heading", { name: "Volumes" })).toBeVisible();
  } finally {
    await other.stop();
  }
});
