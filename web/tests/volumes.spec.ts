// The table of volumes: sorting, columns, and actions on many.
import { expect, logIn, test, THEMES, violations } from "./fixtures";

test("volumes are sorted, columns are chosen and remembered", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "viewer");
  await page.goto(`${daemon.url}#/volumes`);
  const table = page.getByRole("table", { name: "Volumes" });
  const first = table.getByRole("rowgroup").nth(1).getByRole("row").first();
  await expect(first).toContainText("tank/backup");
  await table.getByRole("button", { name: "Size" }).click();
  await expect(table.getByRole("columnheader", { name: "Size" })).toHaveAttribute("aria-sort", "descending");
  await expect(first).toContainText("64 GiB");
  await table.getByRole("button", { name: "Size" }).click();
  await expect(first).toContainText("tank/web-01");
  // Viewers cannot change anything, so there is nothing to select for.
  await expect(table.getByRole("checkbox")).toHaveCount(0);

  await expect(table.getByRole("columnheader", { name: "Quota" })).toHaveCount(0);
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByRole("checkbox", { name: "Quota" }).check();
  await page.getByRole("checkbox", { name: "Exports" }).uncheck();
  await page.keyboard.press("Escape");
  await page.reload();
  await expect(table.getByRole("columnheader", { name: "Quota" })).toBeVisible();
  await expect(table.getByRole("columnheader", { name: "Exports" })).toHaveCount(0);
});

test("many volumes are snapshotted, given a policy and deleted, with confirmation by risk", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  for (const name of ["e1", "e2"]) daemon.convect("volume", "create", `tank/${name}`, "--size", "1G");
  await logIn(page, daemon, "operator");
  await page.goto(`${daemon.url}#/volumes`);
  const table = page.getByRole("table", { name: "Volumes" });
  const bar = page.getByRole("toolbar", { name: "Selected volumes" });
  await expect(bar).toBeHidden();
  await table.getByRole("checkbox", { name: "Select tank/e1" }).check();
  await table.getByRole("checkbox", { name: "Select tank/e2" }).check();
  await expect(bar).toContainText("2 volumes selected");
  for (const [theme, which] of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await violations(page, which), theme).toEqual([]);
  }

  await bar.getByRole("button", { name: "Set policy" }).click();
  const policy = page.getByRole("dialog").getByLabel("Policy");
  await expect(policy.getByRole("option", { name: /^mission-critical/ })).toBeAttached();
  await policy.selectOption({ index: 1 });
  await page.getByRole("dialog").getByRole("button", { name: "Set policy" }).click();
  const messages = page.getByRole("status", { name: "Messages" });
  await expect(messages).toContainText("2 volumes changed");

  // Empty and not exported: a button is enough.
  await bar.getByRole("button", { name: "Delete" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete 2 volumes" });
  await expect(dialog).toContainText("tank/e1, tank/e2");
  await dialog.getByRole("button", { name: "Delete 2 volumes" }).click();
  await expect(messages).toContainText("2 volumes deleted");
  await expect(table).not.toContainText("tank/e1");
  await expect(bar).toBeHidden();

  // Exported: it has to be typed. The filter limits what is acted on.
  await page.getByLabel("Find a volume").fill("db");
  await table.getByRole("checkbox", { name: "Select all volumes" }).check();
  await expect(bar).toContainText("2 volumes selected");
  await bar.getByRole("button", { name: "Snapshot" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("both");
  await page.getByRole("button", { name: "Take snapshot" }).click();
  await expect(messages).toContainText("Snapshot both of 2 volumes taken");
  expect(daemon.convect("snapshot", "list", "tank/db-test")).toContain("both");
  await bar.getByRole("button", { name: "Delete" }).click();
  const typed = page.getByRole("dialog", { name: "Delete 2 volumes" });
  await expect(typed.getByRole("button", { name: "Delete 2 volumes" })).toBeDisabled();
  await typed.getByLabel("Type delete 2 to confirm").fill("delete 2");
  await typed.getByRole("button", { name: "Delete 2 volumes" }).click();
  // An export keeps its volume: what failed is told by name.
  await expect(typed.getByRole("alert")).toContainText("tank/db-main: ");
});
