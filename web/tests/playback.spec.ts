// The last hour of a map, and what flows between tiers while one looks.
import { expect, logIn, test, THEMES, violations } from "./fixtures";

test("the last hour of a map is played back, by pointer and by keys, and one comes back to live", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  await logIn(page, daemon, "viewer");
  await page.goto(`${daemon.url}#/map/tank/db-main`);
  const map = page.getByRole("application", { name: "Map of tank/db-main" });
  const colours = () =>
    map.evaluate((canvas: HTMLCanvasElement) => {
      const { width, height } = canvas;
      const pixels = canvas.getContext("2d")!.getImageData(0, 0, width, height).data;
      const seen = new Set<number>();
      for (let at = 0; at < pixels.length; at += 4) {
        seen.add((pixels[at]! << 16) | (pixels[at + 1]! << 8) | pixels[at + 2]!);
      }
      return seen.size;
    });
  // Nothing was written when the daemon looked first; what is written then is seen at a later look.
  interface Told {
    frames: { at_s: number; all?: string; changed?: string }[];
  }
  const address = `${daemon.url}v1/volumes/tank/db-main/map/frames`;
  const told = () =>
    page.evaluate(async (from) => (await (await fetch(from)).json()) as unknown, address) as Promise<Told>;
  await expect.poll(async () => (await told()).frames.length, { timeout: 300_000 }).toBe(1);
  expect((await told()).frames[0]!.all).toMatch(/^0+$/);
  daemon.load();
  await expect.poll(async () => (await told()).frames.length, { timeout: 300_000 }).toBeGreaterThan(2);

  await page.getByRole("button", { name: "Play back the last hour" }).click();
  const bar = page.getByRole("group", { name: "Playback" });
  await expect(bar).toBeVisible();
  const time = bar.getByRole("slider", { name: "Time" });
  // At the end it stops by itself.
  await expect(bar.getByRole("button", { name: "Play", exact: true })).toBeVisible();
  await time.press("Home");
  const first = await time.getAttribute("aria-valuetext");
  expect(first).toMatch(/^\d\d:\d\d:\d\d, .* ago$/);
  // What is empty, and the lines between the parts.
  await expect.poll(colours).toBe(2);
  await time.press("End");
  await expect.poll(colours).toBeGreaterThan(3);
  await time.press("Home");
  await bar.getByLabel("Speed").selectOption("240");
  await bar.getByRole("button", { name: "Play", exact: true }).click();
  await expect(time).not.toHaveAttribute("aria-valuetext", first!);
  await expect(bar.getByRole("button", { name: "Play", exact: true })).toBeVisible();
  await map.press("ArrowRight");
  await expect(page.getByText("Recorded state.")).toBeVisible();
  for (const [theme, which] of THEMES) {
    await page.emulateMedia({ colorScheme: theme });
    expect(await violations(page, which), theme).toEqual([]);
  }
  await bar.getByRole("button", { name: "Back to live" }).click();
  await expect(bar).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Play back the last hour" })).toBeVisible();
  // The command line knows the same.
  expect(daemon.convect("map", "tank/db-main", "--ago", "1s")).toMatch(/fast \d/);
});

test("what flows between tiers is drawn, and told in figures", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "viewer");
  await page.goto(`${daemon.url}#/drives`);
  const flow = page.getByRole("region", { name: "Flow of tank" });
  await expect(flow.getByText("No data is moving.")).toBeVisible();
  daemon.load();
  const figures = flow.getByRole("table", { name: "Flow of tank in figures" });
  const written = figures.getByRole("row", { name: /^Hosts → Fast tier/ });
  await expect(written).toContainText("a host wrote it");
  await expect(written).toContainText(/[\d.]+ [KM]iB\/s/);
  const picture = flow.getByRole("img");
  await expect(picture.getByText(/^Hosts write [\d.]+ [KM]iB\/s$/)).toBeVisible();
  await expect(picture.getByText(/^to Fast tier [\d.]+ [KM]iB\/s$/)).toBeVisible();
  await expect(figures.getByRole("row", { name: /→ hosts/ }).first()).toContainText("hosts read it");
  await flow.getByLabel("Mean over").selectOption("60");
  await expect(written).toBeVisible();
});
