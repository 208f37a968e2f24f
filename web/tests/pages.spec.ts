// Every page in both themes: nothing that keeps people out, and pictures for the README.
import { join } from "node:path";
import { expect, logIn, test, violations } from "./fixtures";

const PAGES = [
  ["", "Overview"],
  ["volumes", "Volumes"],
  ["volumes/tank/db-main", "tank/db-main"],
  ["drives", "Tiers and drives"],
  ["map", "Live map"],
  ["map/tank/db-main", "Live map"],
  ["what-if", "What if"],
  ["snapshots", "Snapshots"],
  ["exports/db-main", "Exports"],
  ["events", "Events"],
  ["jobs", "Jobs"],
  ["servers", "Servers"],
  ["tokens", "Tokens"],
  ["audit", "Audit"],
] as const;
const SHOWN = new Set(["", "map/tank/db-main", "drives"]);
const PICTURES = process.env["CONVECT_PICTURES"];

test("every page in both themes has no serious fault by axe", async ({ page, daemon }) => {
  daemon.fill();
  daemon.load();
  await page.goto(daemon.url);
  expect(await violations(page)).toEqual([]);
  await logIn(page, daemon, "admin");
  await page.waitForTimeout(PICTURES ? 30_000 : 3000);
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    for (const [place, title] of PAGES) {
      await page.goto(`${daemon.url}#/${place}`);
      await expect(page.getByRole("heading", { name: title, level: 1 })).toBeVisible();
      await page.waitForTimeout(PICTURES ? 4000 : 700);
      expect(await violations(page), `${theme} ${place}`).toEqual([]);
      if (PICTURES) {
        const name = place.replaceAll("/", "-") || "overview";
        await page.screenshot({ path: join(PICTURES, `${name}-${theme}.png`), fullPage: !SHOWN.has(place) });
      }
    }
  }
});

test("on a phone every page fits, and what is chosen is found", async ({ page, daemon }) => {
  daemon.fill();
  await page.setViewportSize({ width: 390, height: 780 });
  await logIn(page, daemon, "admin");
  for (const [place] of PAGES) {
    await page.goto(`${daemon.url}#/${place}`);
    await page.waitForTimeout(500);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(wide, place).toBeLessThanOrEqual(390);
    if (PICTURES && place === "") await page.screenshot({ path: join(PICTURES, "phone.png") });
  }
});
