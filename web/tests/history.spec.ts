// What tiers, vdrives, drives and exports did over time, where they are shown.
import { expect, hasWritten, logIn, test, THEMES, violations } from "./fixtures";

const SHOWN = [
  ["drives", "pool tank"],
  ["drives", "RAM cache of tank"],
  ["drives", "fast tier of tank"],
  ["drives", "slow tier of tank"],
  ["drives", "vdrive 1 of tank"],
  ["exports/db-main", "export db-main"],
] as const;
const CHARTS = ["IOPS", "Throughput", "Read latency", "Write latency", "Queue depth"];

test("each part has its history, by keyboard and in both themes", async ({ page, daemon }) => {
  daemon.fill();
  daemon.load();
  await logIn(page, daemon, "viewer");
  await hasWritten(page, daemon);
  for (const [theme, which] of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [place, title] of SHOWN) {
      await page.goto(`${daemon.url}#/${place}`);
      const button = page.getByRole("button", { name: `History of ${title}`, exact: true });
      await button.focus();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog", { name: `${title} over time` });
      for (const chart of CHARTS) {
        await expect(dialog.getByRole("img", { name: new RegExp(`^${chart}: `) })).toBeVisible();
      }
      expect(await violations(page, which), `${theme} ${title}`).toEqual([]);
      await page.keyboard.press("Escape");
      await expect(dialog).toBeHidden();
    }
  }
});

test("what is drawn is what was done", async ({ page, daemon }) => {
  daemon.fill();
  daemon.load();
  await logIn(page, daemon, "viewer");
  await hasWritten(page, daemon);
  const drive = daemon.file("f1", "512M").split("?")[0]!;
  for (const [place, title] of [
    ["exports/db-main", "export db-main"],
    ["drives", "vdrive 1 of tank"],
    ["drives", "fast tier of tank"],
    ["drives", drive],
  ] as const) {
    await page.goto(`${daemon.url}#/${place}`);
    await page
      .getByRole("button", { name: `History of ${title}` })
      .first()
      .click();
    const dialog = page.getByRole("dialog");
    const chart = (name: string) => dialog.getByRole("img", { name: new RegExp(`^${name}: `) });
    await expect(chart("IOPS"), title).toHaveAccessibleName(/writes up to [1-9]/);
    await expect(chart("Throughput")).toHaveAccessibleName(/writes up to [1-9]/);
    await expect(chart("Write latency")).toHaveAccessibleName(/p99 up to [0-9.]+ .?s/);
    await expect(chart("By size")).toHaveAccessibleName(/[1-9][0-9,.k]* writes/);
    await dialog.getByText("Table: By size").click();
    await expect(dialog.getByRole("table", { name: "By size" })).toBeVisible();
    await page.keyboard.press("Escape");
  }
});
