// Every page in both themes: nothing that keeps people out, and pictures for the README.
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { expect, hasWritten, logIn, test, THEMES, violations } from "./fixtures";

/** Each with its title and something that comes from the daemon: an empty page has no faults. */
const PAGES = [
  ["", "Overview", "tank"],
  ["volumes", "Volumes", "db-main"],
  ["volumes/tank/db-main", "tank/db-main", "before-upgrade"],
  ["drives", "Tiers and drives", "vdrive 2"],
  ["map", "Live map", "tank/db-main"],
  ["map/tank/db-main", "Live map", "per square"],
  ["qos", "Quality of service", "mission-critical"],
  ["what-if", "What if", "tank"],
  ["snapshots", "Snapshots", "before-upgrade"],
  ["exports/db-main", "Exports", "db.sock"],
  ["events", "Events", "daemon started"],
  ["jobs", "Jobs", "No jobs yet"],
  ["servers", "Servers", "This server"],
  ["tokens", "Tokens", "admin"],
  ["audit", "Audit", "token create"],
] as const;

/** Goes to a page and waits for what it shows. */
async function show(page: Page, url: string, [place, title, shown]: (typeof PAGES)[number]): Promise<void> {
  await page.goto(`${url}#/${place}`);
  await expect(page.getByRole("heading", { name: title, level: 1 })).toBeVisible();
  await expect(page.getByRole("main")).toContainText(shown);
}

const SHOWN = new Set(["", "map/tank/db-main", "drives"]);
const PICTURES = process.env["CONVECT_PICTURES"];

test("every page in both themes has no serious fault by axe", async ({ page, daemon }) => {
  daemon.fill();
  daemon.load();
  await page.goto(daemon.url);
  expect(await violations(page)).toEqual([]);
  await logIn(page, daemon, "admin");
  await hasWritten(page, daemon);
  if (PICTURES) await page.waitForTimeout(30_000);
  for (const [theme, which] of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    for (const shown of PAGES) {
      const [place] = shown;
      await show(page, daemon.url, shown);
      if (PICTURES) await page.waitForTimeout(4000);
      expect(await violations(page, which), `${theme} ${place}`).toEqual([]);
      if (PICTURES) {
        const name = place.replaceAll("/", "-") || "overview";
        await page.screenshot({ path: join(PICTURES, `${name}-${theme}.png`), fullPage: !SHOWN.has(place) });
      }
    }
  }
});

test("on a phone, a tablet and a wide screen every page fits and has no serious fault", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  await logIn(page, daemon, "admin");
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height: 780 });
    for (const shown of PAGES) {
      const [place] = shown;
      await page.emulateMedia({ colorScheme: "light" });
      await show(page, daemon.url, shown);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(wide, `${place} at ${width}`).toBeLessThanOrEqual(width);
      for (const [theme, which] of THEMES) {
        await page.emulateMedia({ colorScheme: theme });
        expect(await violations(page, which), `${theme} ${place} at ${width}`).toEqual([]);
      }
      if (PICTURES && place === "" && width === 390)
        await page.screenshot({ path: join(PICTURES, "phone.png") });
    }
  }
});
