// A thousand volumes and ten thousand snapshots.
import { expect, logIn, test } from "./fixtures";

const VOLUMES = 1000;
const TIMES = 10;

test("long lists have few rows in the document, and are found through", async ({ page, daemon }) => {
  daemon.convect(
    "pool",
    "create",
    "tank",
    "fast",
    "ram:fast?size=1G",
    "slow",
    "ram:slow?size=1G",
    "--accept-unmirrored",
  );
  const token = daemon.token("admin", "maker");
  const headers = { Authorization: `Bearer ${token}` };
  const names = Array.from({ length: VOLUMES }, (_, at) => `v${String(at).padStart(4, "0")}`);
  for (const name of names) {
    const data = { pool: "tank", name, size: 1 << 20 };
    const made = await page.request.post(`${daemon.url}v1/volumes`, { headers, data });
    expect(made.status()).toBe(201);
  }
  for (let turn = 0; turn < TIMES; turn += 1) {
    for (let from = 0; from < VOLUMES; from += 100) {
      const data = { pool: "tank", volumes: names.slice(from, from + 100), name: `s${turn}` };
      const taken = await page.request.post(`${daemon.url}v1/snapshots`, { headers, data });
      expect(taken.status()).toBe(201);
    }
  }
  await logIn(page, daemon, "viewer");
  await page.goto(`${daemon.url}#/volumes`);
  const volumes = page.getByRole("table", { name: "Volumes" });
  await expect(volumes).toHaveAttribute("aria-rowcount", String(VOLUMES + 1));
  expect(await volumes.getByRole("row").count()).toBeLessThan(60);
  await volumes
    .getByRole("rowgroup")
    .nth(1)
    .evaluate((rows) => rows.scrollTo(0, rows.scrollHeight));
  await expect(volumes.getByRole("link", { name: "tank/v0999" })).toBeVisible();
  await page.getByLabel("Find a volume").fill("v0500");
  await expect(volumes).toHaveAttribute("aria-rowcount", "2");

  await page.goto(`${daemon.url}#/snapshots`);
  await expect(page.getByRole("heading", { name: "10,000 snapshots" })).toBeVisible();
  const snapshots = page.getByRole("table", { name: "Snapshots" });
  await expect(snapshots).toHaveAttribute("aria-rowcount", String(VOLUMES * (TIMES + 1) + 1));
  expect(await snapshots.getByRole("row").count()).toBeLessThan(60);
  await snapshots
    .getByRole("rowgroup")
    .nth(1)
    .evaluate((rows) => rows.scrollTo(0, rows.scrollHeight));
  await expect(snapshots.getByText("s9", { exact: true }).last()).toBeVisible();
});
