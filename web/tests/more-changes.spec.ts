// The rest of what the command line can change: pools that move, snapshots as files, exports, and who is told.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "@playwright/test";
import { expect, logIn, test, violations } from "./fixtures";

async function confirm(page: Page, name: string, action: string): Promise<void> {
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await page.getByRole("dialog").getByRole("button", { name: action }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
}

test("a pool is given its settings, exported, and imported from its drives again", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  await logIn(page, daemon, "admin");
  await page.goto(`${daemon.url}#/drives`);
  await page.getByRole("button", { name: "Settings of tank" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Promotion budget per day").fill("200G");
  await dialog.getByRole("button", { name: "Set budget" }).click();
  await expect(dialog.getByRole("status")).toHaveText("Budget set.");
  await dialog.getByLabel("Warning levels").fill("90, 80");
  await expect(dialog.getByRole("button", { name: "Set levels" })).toBeDisabled();
  await dialog.getByLabel("Warning levels").fill("70, 85");
  await dialog.getByRole("button", { name: "Set levels" }).click();
  await expect(dialog.getByRole("status")).toHaveText("Levels set.");
  await dialog.getByRole("button", { name: "Flush and drop fast tier" }).click();
  await expect(dialog.getByRole("status")).toHaveText("Fast tier flushed and dropped.");
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Close" }).click();
  const shown = JSON.parse(daemon.convect("pool", "status", "tank", "--json")) as {
    warn_at: number[];
    promotion_budget: { daily: number };
  };
  expect([shown.warn_at, shown.promotion_budget.daily]).toEqual([[70, 85], 200 * 2 ** 30]);

  await page.getByRole("button", { name: "Export", exact: true }).click();
  await confirm(page, "tank", "Export pool");
  await expect(page.getByText("No pools.")).toBeVisible();
  await page.getByRole("button", { name: "Import a pool" }).click();
  const drives = ["f1", "f2"].map((name) => daemon.file(name, "512M"));
  await page.getByLabel("Drives, one per line").fill(drives.join("\n"));
  await page.getByRole("button", { name: "Find pools" }).click();
  const found = page.getByRole("region", { name: "Pool tank" });
  // Their labels lead to the disks.
  await expect(found).toContainText("4 drives found");
  await found.getByRole("button", { name: "Import tank" }).click();
  await expect(page.getByRole("region", { name: "Pool tank", exact: true })).toContainText("vdrive 2");
});

test("a snapshot is renamed, saved as a file, and received as another volume; a clone is promoted", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  await logIn(page, daemon, "operator");
  await page.goto(`${daemon.url}#/volumes/tank/db-main`);
  await page.getByRole("button", { name: "Rename tank/db-main@before-upgrade" }).click();
  await page.getByLabel("New name").fill("golden");
  await page.getByRole("button", { name: "Rename snapshot" }).click();
  await page.getByRole("button", { name: "Send tank/db-main@golden" }).click();
  expect(await violations(page)).toEqual([]);
  const [saved] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Save stream" }).click(),
  ]);
  expect(saved.suggestedFilename()).toBe("db-main@golden.convect");
  const file = daemon.path("stream");
  await saved.saveAs(file);

  await page.goto(`${daemon.url}#/volumes`);
  await page.getByRole("button", { name: "Receive" }).click();
  const dialog = page.getByRole("dialog");
  const receive = dialog.getByRole("button", { name: "Receive snapshot" });
  await expect(receive).toBeDisabled();
  await dialog.getByLabel("Volume", { exact: true }).fill("db-main");
  await dialog.getByLabel("Stream file").setInputFiles(file);
  await receive.click();
  // What the daemon refuses is told, though it refuses before it has read all.
  await expect(dialog.getByRole("alert")).toContainText("db-main");
  // Also of a file that is still being sent when it is refused.
  const long = daemon.path("long");
  writeFileSync(long, Buffer.alloc(96 << 20, 7));
  await dialog.getByLabel("Volume", { exact: true }).fill("never");
  await dialog.getByLabel("Stream file").setInputFiles(long);
  await receive.click();
  await expect(dialog.getByRole("alert")).toContainText("not a stream of `convect send`");
  await dialog.getByLabel("Stream file").setInputFiles(file);
  await dialog.getByLabel("Volume", { exact: true }).fill("copy");
  expect(await violations(page)).toEqual([]);
  await receive.click();
  await expect(page.getByRole("heading", { name: "tank/copy" })).toBeVisible();
  await expect(page.getByRole("table", { name: "Snapshots" })).toContainText("golden");

  await page.goto(`${daemon.url}#/volumes/tank/db-test`);
  await page.getByRole("button", { name: "Promote" }).click();
  await page.getByRole("button", { name: "Promote clone" }).click();
  await expect(page.getByRole("dialog")).toContainText(
    "The volume now has the snapshots golden of tank/db-main.",
  );
  await page.getByRole("button", { name: "Close" }).click();
  await expect(page.getByRole("table", { name: "Snapshots" })).toContainText("golden");
});

test("an export's parameters change while hosts go on, and a snapshot is exported", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  await logIn(page, daemon, "operator");
  await page.goto(`${daemon.url}#/exports/far`);
  await page.getByRole("button", { name: "Change far" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByRole("button", { name: "Save changes" })).toBeDisabled();
  await dialog.getByLabel("initiators", { exact: true }).fill("iqn.2026-01.com.example:host");
  expect(await violations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Save changes" }).click();
  await expect(dialog).toHaveCount(0);
  expect(daemon.convect("export", "show", "far", "--json")).toContain("iqn.2026-01.com.example:host");
  await expect(page.getByText("No iSCSI sessions.")).toBeVisible();

  await page.getByRole("button", { name: "New export" }).click();
  await page.getByLabel("Name").fill("old");
  await page.getByLabel("Volume", { exact: true }).selectOption("tank/db-main");
  await page.getByLabel("By", { exact: true }).selectOption("nbd");
  await dialog.getByText("More", { exact: true }).click();
  await page.getByLabel("Content").selectOption("before-upgrade");
  await page.getByLabel("listen", { exact: true }).fill(`unix:${daemon.path("old.sock")}`);
  await page.getByRole("button", { name: "Create export" }).click();
  await expect(page.getByRole("article", { name: "Export old" })).toContainText("db-main@before-upgrade");
});

test("a target is made, tried and deleted", async ({ page, daemon }) => {
  const told: string[] = [];
  const receiver = createServer((request, answer) => {
    request.on("data", (part: Buffer) => told.push(part.toString()));
    request.on("end", () => answer.writeHead(204).end());
  });
  await new Promise<void>((ready) => receiver.listen(0, "127.0.0.1", ready));
  const { port } = receiver.address() as AddressInfo;
  await logIn(page, daemon, "admin");
  await page.goto(`${daemon.url}#/events`);
  await page.getByRole("button", { name: "New target" }).click();
  await page.getByLabel("Name").fill("ops");
  await page.getByLabel("Address").fill(`http://127.0.0.1:${port}/`);
  await page.getByLabel("Signing secret").fill("a-secret-of-both");
  expect(await violations(page)).toEqual([]);
  await page.getByRole("button", { name: "Create target" }).click();
  const table = page.getByRole("table", { name: "Targets" });
  await expect(table).toContainText("ops");
  await page.getByRole("button", { name: "Test ops" }).click();
  await expect(page.getByText("ops accepted the test notification.")).toBeVisible();
  expect(told.length).toBeGreaterThan(0);
  expect(await page.content()).not.toContain("a-secret-of-both");
  await page.getByRole("button", { name: "Delete ops" }).click();
  await confirm(page, "ops", "Delete target");
  await expect(page.getByText("No notification targets configured.")).toBeVisible();
  receiver.close();
});
