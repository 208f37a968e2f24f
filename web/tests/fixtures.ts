// A daemon for each test, and a page that is logged in.
import { AxeBuilder } from "@axe-core/playwright";
import { test as base, expect, type Page } from "@playwright/test";
import type { History } from "../src/api/types";
import { Daemon, type Role } from "./daemon";

export const test = base.extend<{ daemon: Daemon }>({
  daemon: async ({}, use) => {
    const daemon = await Daemon.start();
    await use(daemon);
    await daemon.stop();
  },
});

export { expect };

export async function logIn(page: Page, daemon: Daemon, role: Role, url: string = daemon.url): Promise<void> {
  const token = daemon.token(role);
  await page.goto(url);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByRole("heading", { name: "Overview" })).toBeVisible();
}

/** Waits until the history tells of what the host writes. */
export async function hasWritten(page: Page, daemon: Daemon): Promise<void> {
  const most = async () => {
    const answer = await page.request.get(
      new URL("v1/history?object=export/tank/db-main&series=writes", daemon.url).href,
    );
    const history: History = await answer.json();
    return Math.max(0, ...history.series[0]!.values.map(Number));
  };
  await expect.poll(most).toBeGreaterThan(0);
}

/**
 * Rules of axe that depend on colours: themes differ by nothing else, so a page that is examined in one of them is
 * examined in the other by these.
 */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/**
 * Serious and critical violations of WCAG 2.2 A and AA, as axe finds them; none is right. `which` is `colours` for a
 * page of which all has been examined in another theme.
 */
export async function violations(page: Page, which: "all" | "colours" = "all"): Promise<string[]> {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  // The script is long, and stays in a page that only goes to another place of itself. There are no frames, whose results
  // another page would put together, and what is right need not be told.
  const isThere = await page.evaluate(() => "axe" in window);
  const builder = new AxeBuilder(isThere ? { page, axeSource: ";" } : { page })
    .setLegacyMode()
    .options({ resultTypes: ["violations"] });
  const found = await (which === "all" ? builder.withTags(tags) : builder.withRules(COLOUR_RULES)).analyze();
  return found.violations
    .filter((violation) => violation.impact === "serious" || violation.impact === "critical")
    .map(
      (violation) => `${violation.id}: ${violation.nodes.map((node) => node.target.join(" ")).join(", ")}`,
    );
}

/** The themes of the page, and what has to be examined in each. */
export const THEMES = [
  ["light", "all"],
  ["dark", "colours"],
] as const;
