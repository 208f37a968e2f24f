// What can be changed on the page, and what each asks for before something is lost.
import type { Page } from "@playwright/test";
import { freePort } from "./daemon";
import { expect, logIn, test } from "./fixtures";

async function confirm(page: Page, name: string, action: string): Promise<void> {
  const button = page.getByRole("dialog").getByRole("button", { name: action });
  await expect(button).toBeDisabled();
  await page.getByLabel(`Type ${name} to confirm`).fill(`${name}x`);
  await expect(button).toBeDisabled();
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await button.click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
}

test("a volume is resized, snapshotted, rolled back, given knobs and deleted", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "operator");
  await page.goto(`${daemon.url}#/volumes/tank/db-test`);
  await page.getByRole("button", { name: "Resize" }).click();
  await page.getByLabel("New size").fill("9G");
  await page.getByRole("button", { name: "Resize volume" }).click();
  await expect(page.getByText("9 GiB", { exact: true })).toBeVisible();

  await page.getByRole("button", { name: "Resize" }).click();
  await page.getByLabel("New size").fill("4G");
  const smaller = page.getByRole("button", { name: "Shrink volume" });
  await expect(smaller).toBeDisabled();
  await page.getByLabel(/Data beyond 4G is lost/).fill("tank/db-test");
  await smaller.click();
  await expect(page.getByText("4 GiB", { exact: true })).toBeVisible();

  await page.getByRole("button", { name: "New snapshot" }).click();
  await page.getByLabel("Name").fill("today");
  await page.getByRole("button", { name: "Take snapshot" }).click();
  await page.getByRole("button", { name: "Roll back to tank/db-test@today" }).click();
  await confirm(page, "tank/db-test@today", "Roll back volume");

  await page.getByLabel("Quota").fill("1 lot");
  await expect(page.getByRole("button", { name: "Save changes" })).toBeDisabled();
  await page.getByLabel("Quota").fill("6G");
  await page.getByLabel("Reaction").selectOption("eager");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect(page.getByRole("definition").filter({ hasText: "6 GiB" })).toBeVisible();
  const shown = JSON.parse(daemon.convect("volume", "show", "tank/db-test", "--json")) as {
    quota: number;
    placement: { reaction: string };
  };
  expect([shown.quota, shown.placement.reaction]).toEqual([6 * 2 ** 30, "eager"]);

  await page.getByRole("button", { name: "Delete tank/db-test@today" }).click();
  await confirm(page, "tank/db-test@today", "Delete snapshot");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await confirm(page, "tank/db-test", "Delete volume");
  await expect(page.getByRole("heading", { name: "Volumes" })).toBeVisible();
  await expect(page.getByRole("table", { name: "Volumes" })).not.toContainText("db-test");
});

test("what the daemon refuses is told where it was asked for", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "operator");
  await page.goto(`${daemon.url}#/volumes/tank/web-01`);
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByLabel("Type tank/web-01 to confirm").fill("tank/web-01");
  await page.getByRole("button", { name: "Delete volume" }).click();
  await expect(page.getByRole("alert")).toContainText("exported as web-01");
});

test("an export is made with the commands for each system, and ended by its name", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  await logIn(page, daemon, "operator");
  await page.goto(`${daemon.url}#/exports`);
  await page.getByRole("button", { name: "New export" }).click();
  await page.getByLabel("Name").fill("disk");
  await page.getByLabel("Volume", { exact: true }).selectOption("tank/backup");
  await page.getByLabel("By", { exact: true }).selectOption("iscsi");
  const port = await freePort();
  await page.getByLabel("portal").fill(`127.0.0.1:${port}`);
  await page.getByRole("button", { name: "Create export" }).click();
  const card = page.getByRole("article", { name: "Export disk" });
  for (const [system, line] of [
    ["Linux", "iscsiadm -m node -T"],
    ["Windows", `New-IscsiTargetPortal -TargetPortalAddress 127.0.0.1 -TargetPortalPortNumber ${port}`],
    ["VMware ESXi", `--address=127.0.0.1:${port}`],
    ["QEMU", `iscsi://127.0.0.1:${port}/`],
  ] as const) {
    await card.getByRole("button", { name: system, exact: true }).click();
    await expect(card.getByLabel(`Commands for ${system}`, { exact: true })).toContainText(line);
  }
  await card.getByRole("button", { name: "Delete disk" }).click();
  await confirm(page, "disk", "Delete export");
  await expect(card).toHaveCount(0);
});

test("a drive joins, and a vdrive is evacuated", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "admin");
  await page.goto(`${daemon.url}#/drives`);
  await page.getByRole("button", { name: "Add a vdrive" }).nth(1).click();
  await page
    .getByLabel("Drives, one per line")
    .fill(["more-1", "more-2"].map((name) => daemon.file(name, "2G")).join("\n"));
  await page.getByLabel("Layout").selectOption("stripe");
  await page.getByLabel("Chunk").fill("some");
  await expect(page.getByRole("button", { name: "Add vdrive" })).toBeDisabled();
  await page.getByLabel("Chunk").fill("256K");
  await page.getByRole("button", { name: "Add vdrive" }).click();
  await expect(page.getByText("stripe of 256 KiB")).toBeVisible();
  await expect(page.getByText("vdrive 3")).toBeVisible();
  await page.getByRole("button", { name: "Evacuate" }).nth(1).click();
  await confirm(page, "tank", "Evacuate vdrive");
  await expect(page.getByText("vdrive 2")).toHaveCount(0, { timeout: 300_000 });
  await page.goto(`${daemon.url}#/jobs`);
  await expect(page.getByText(/evacuate tank/)).toBeVisible();
});

test("who may only look sees no way to change something", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "viewer");
  // Each with its title and something that comes from the daemon: an empty page has nothing to press.
  for (const [place, title, shown] of [
    ["", "Overview", "tank"],
    ["volumes", "Volumes", "db-main"],
    ["volumes/tank/db-main", "tank/db-main", "before-upgrade"],
    ["drives", "Tiers and drives", "vdrive 1"],
    ["snapshots", "Snapshots", "before-upgrade"],
    ["exports/db-main", "Exports", "db.sock"],
    ["jobs", "Jobs", "No jobs yet"],
  ] as const) {
    await page.goto(`${daemon.url}#/${place}`);
    await expect(page.getByRole("heading", { name: title, level: 1 })).toBeVisible();
    await expect(page.getByRole("main")).toContainText(shown);
    const names = await page.getByRole("main").getByRole("button").allInnerTexts();
    const changes = names.filter((name) =>
      /new|delete|make|end|resize|take|roll|add|evacuate|scrub|destroy/i.test(name),
    );
    expect(changes, place).toEqual([]);
  }
  await expect(page.getByRole("link", { name: "Tokens" })).toHaveCount(0);
  await expect(page.getByRole("link", { name: "Audit" })).toHaveCount(0);
});

test("a token is made, shown once, and revoked by its name; the log tells who did it", async ({
  page,
  daemon,
  browser,
}) => {
  await logIn(page, daemon, "admin");
  await page.goto(`${daemon.url}#/tokens`);
  await page.getByRole("button", { name: "New token" }).click();
  await page.getByLabel("Name").fill("ci");
  await page.getByLabel("Role").selectOption("viewer");
  await page.getByRole("button", { name: "Create token" }).click();
  const secret = await page.getByLabel("Token secret", { exact: true }).innerText();
  await page.getByRole("button", { name: "I have saved it" }).click();

  const other = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
  await other.goto(daemon.url);
  await other.getByLabel("Token").fill(secret);
  await other.getByRole("button", { name: "Log in" }).click();
  await expect(other.getByText("An administrator has to create the first pool.")).toBeVisible();

  await page.getByRole("button", { name: "Revoke ci" }).click();
  await confirm(page, "ci", "Revoke token");
  await expect(page.getByRole("table", { name: "Tokens" })).not.toContainText("ci");
  await other.reload();
  await expect(other.getByLabel("Token")).toBeVisible();
  await other.close();

  await page.goto(`${daemon.url}#/audit`);
  const log = page.getByRole("table", { name: "Changes" });
  await expect(log.getByRole("row").nth(1)).toContainText("token revoke");
  await expect(log).toContainText("token create");
  expect(daemon.read("state/audit.log")).not.toContain(secret);
});

test("a wrong token is refused, and too many are refused at once", async ({ page, daemon }) => {
  await page.goto(daemon.url);
  const alert = page.getByRole("alert");
  let turns = 0;
  // Ten within a minute are too many. Where they take longer, those of the next minute are.
  for (let status = 0; status !== 429; turns += 1) {
    expect(turns).toBeLessThan(100);
    await page.getByLabel("Token").fill(`guess ${turns}`);
    const answered = page.waitForResponse((answer) => answer.request().method() === "POST");
    await page.getByRole("button", { name: "Log in" }).click();
    status = (await answered).status();
    await expect(alert).toContainText(
      status === 429 ? "too many failed authentication attempts" : "invalid or revoked token",
    );
  }
  expect(turns).toBeGreaterThan(10);
});
