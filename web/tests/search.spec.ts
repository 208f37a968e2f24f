// Search over everything and shortcuts, by keyboard alone; messages; a page that fails.
import { expect, logIn, test, THEMES, violations } from "./fixtures";

test("everything with a name is found and opened by keyboard alone", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "viewer");
  await expect(page.getByRole("main")).toContainText("tank");
  const dialog = page.getByRole("dialog", { name: "Search" });
  const options = dialog.getByRole("option");
  for (const [text, name, place] of [
    ["volume db-main", "tank/db-main", "#/volumes/tank/db-main"],
    ["before-up", "tank/db-main@before-upgrade", "#/volumes/tank/db-main"],
    ["export far", "far", "#/exports/far"],
    ["pool tank", "tank", "#/drives"],
    ["drive s2", "s2", "#/drives"],
    ["quality", "Quality of service", "#/qos"],
  ] as const) {
    await page.keyboard.press("Control+k");
    await expect(dialog.getByRole("combobox")).toBeFocused();
    await page.keyboard.type(text);
    await expect(options.first()).toContainText(name);
    await page.keyboard.press("Enter");
    await expect(dialog).toBeHidden();
    await expect(page).toHaveURL(new RegExp(`${place}$`));
  }
  await page.keyboard.press("Control+k");
  await page.keyboard.type("tank");
  await expect(options.nth(3)).toBeVisible();
  await page.keyboard.press("ArrowDown");
  await expect(options.nth(1)).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await expect(options.last()).toHaveAttribute("aria-selected", "true");
  for (const [theme, which] of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await violations(page, which), theme).toEqual([]);
  }
});

test("keys go to pages and show the help, unless they are turned off", async ({ page, daemon }) => {
  await logIn(page, daemon, "viewer");
  const jobs = page.getByRole("heading", { name: "Jobs", level: 1 });
  // The letter counts for a moment after the g, which may pass on a busy machine.
  await expect(async () => {
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await expect(jobs).toBeVisible({ timeout: 2000 });
  }).toPass();
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await expect(help).toContainText("Quality of service");
  expect(await violations(page)).toEqual([]);
  await help.getByLabel("Shortcuts without Ctrl").uncheck();
  await page.keyboard.press("Escape");
  await expect(help).toBeHidden();
  await page.keyboard.press("?");
  await page.keyboard.press("g");
  await page.keyboard.press("v");
  await page.waitForTimeout(300);
  await expect(help).toBeHidden();
  await expect(jobs).toBeVisible();
});

test("an error that no form shows is a message", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "operator");
  await page.goto(`${daemon.url}#/drives`);
  const body = { code: "busy", message: "the pool is being resilvered: scrub it afterwards" };
  await page.route("**/v1/pools/tank/scrub", (route) => route.fulfill({ status: 409, json: body }));
  await page.getByRole("button", { name: "Scrub", exact: true }).click();
  const messages = page.getByRole("status", { name: "Messages" });
  await expect(messages).toContainText(body.message);
  expect(await violations(page)).toEqual([]);
  await messages.getByRole("button", { name: /^Close message/ }).click();
  await expect(messages).not.toContainText(body.message);
});

test("a page that fails leaves the others usable", async ({ page, daemon }) => {
  await logIn(page, daemon, "viewer");
  // Not what the interface says: the page cannot draw it.
  await page.route("**/v1/exports*", (route) => route.fulfill({ json: { items: [null] } }));
  await page.goto(`${daemon.url}#/exports`);
  const alert = page.getByRole("alert");
  await expect(alert).toContainText("This page failed");
  await page.getByRole("link", { name: "Volumes", exact: true }).click();
  await expect(page.getByRole("heading", { name: "Volumes", level: 1 })).toBeVisible();
  await page.unroute("**/v1/exports*");
  await page.goto(`${daemon.url}#/exports`);
  await expect(page.getByRole("heading", { name: "Exports", level: 1 })).toBeVisible();
});
