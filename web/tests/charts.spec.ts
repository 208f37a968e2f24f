// The time range of a page: charts zoom together by dragging, tell the values at the cursor, and have a table.
import type { Page } from "@playwright/test";
import type { Daemon } from "./daemon";
import { expect, hasWritten, logIn, test, violations } from "./fixtures";

/** Counts requests of the history from now on, by their start. */
function requestsOf(page: Page): string[] {
  const starts: string[] = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.pathname === "/v1/history") starts.push(url.searchParams.get("from") ?? "");
  });
  return starts;
}

/** A viewer logs in while a load runs, and its first writes are recorded. */
async function logInUnderLoad(page: Page, daemon: Daemon): Promise<void> {
  daemon.fill();
  daemon.load();
  await logIn(page, daemon, "viewer");
  await hasWritten(page, daemon);
}

test("dragging over a chart zooms all charts of the page with one request, and it can be reset", async ({
  page,
  daemon,
}) => {
  await logInUnderLoad(page, daemon);
  await page.goto(`${daemon.url}#/volumes/tank/db-main`);
  const chart = page.getByRole("img", { name: /^IOPS: / });
  await expect(chart).toHaveAccessibleName(/writes up to [1-9]/);
  const range = page.getByRole("group", { name: "Time range" });
  await range.getByRole("button", { name: "15 min" }).click();
  await expect(range.getByRole("button", { name: "15 min" })).toHaveAttribute("aria-pressed", "true");

  const box = (await chart.boundingBox())!;
  const starts = requestsOf(page);
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 60, { steps: 4 });
  await page.mouse.up();
  const reset = range.getByRole("button", { name: /reset zoom/ });
  await expect(reset).toBeVisible();
  await expect.poll(() => starts.length).toBeGreaterThan(0);
  // A zoom is fixed: nothing is requested again, and all charts of the object share the request.
  await page.waitForTimeout(3000);
  expect(starts).toHaveLength(1);
  await reset.click();
  await expect(reset).toBeHidden();
  await expect(range.getByRole("button", { name: "15 min" })).toHaveAttribute("aria-pressed", "true");
});

test("the legend tells the values at the cursor, and the table those of the range", async ({
  page,
  daemon,
}) => {
  await logInUnderLoad(page, daemon);
  await page.getByRole("group", { name: "Time range" }).getByRole("button", { name: "15 min" }).click();
  const chart = page.getByRole("img", { name: /^IOPS: / });
  await expect(chart).toHaveAccessibleName(/writes up to [1-9]/);
  const box = (await chart.boundingBox())!;
  await page.mouse.move(box.x + box.width - 30, box.y + 60);
  await expect(page.getByRole("list", { name: "Lines of IOPS" })).toHaveText(
    /reads ?[0-9.,–]+.*writes ?[0-9.,–]+/,
  );
  await page.getByRole("button", { name: "IOPS as a table" }).click();
  const table = page.getByRole("region", { name: "IOPS, values" });
  await expect(table.getByRole("row")).not.toHaveCount(0);
  expect(await table.getByRole("row").count()).toBeLessThanOrEqual(61);
  expect(await violations(page)).toEqual([]);
});
