// What is wrong and what happened, as a viewer sees it while it happens.
import { expect, logIn, test } from "./fixtures";

test("a drive that is out is seen with what to do, until it is back", async ({ page, daemon }) => {
  const other = daemon.file("b", "256M");
  daemon.convect("pool", "create", "tank", "slow", "mirror", daemon.file("a", "256M"), other);
  await logIn(page, daemon, "viewer");
  await page.goto(`${daemon.url}#/events`);
  await expect(page.getByText("No active alerts.")).toBeVisible();
  const events = page.getByRole("table", { name: "Events" });
  await expect(events.getByText("daemon started")).toBeVisible();

  const drive = other.replace(/\?.*/, "");
  daemon.convect("pool", "offline", "tank", drive);
  const alerts = page.getByRole("list", { name: "Alerts" });
  await expect(alerts).toContainText("leg out");
  await expect(alerts).toContainText(
    `Recommended action: bring it online with \`convect pool online tank ${drive}\``,
  );
  await expect(events.getByText("raised")).toBeVisible();

  daemon.convect("pool", "online", "tank", drive, "--yes");
  await expect(page.getByText("No active alerts.")).toBeVisible();
  await expect(events.getByText("cleared")).toBeVisible();
  await page.getByLabel("Search events").fill("leg cleared");
  await expect(events.getByText("daemon started")).toHaveCount(0);
  await page.goto(`${daemon.url}#/jobs`);
  await expect(page.getByText(/^resync tank\//)).toBeVisible();
});
