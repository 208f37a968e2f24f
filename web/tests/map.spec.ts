// The live map: it shows what moves, looks closer, and says why a part lies where it does.
import { expect, logIn, test } from "./fixtures";

test("a part is chosen, explained and looked at more closely, by pointer and by keys", async ({
  page,
  daemon,
}) => {
  daemon.fill();
  daemon.load();
  await logIn(page, daemon, "viewer");
  await page.goto(`${daemon.url}#/map`);
  const row = page.getByRole("region", { name: "tank/db-main" });
  await row.getByRole("application").click();
  await expect(page).toHaveURL(/#\/map\/tank\/db-main$/);
  const map = page.getByRole("application", { name: "Map of tank/db-main" });
  await map.click({ position: { x: 3, y: 3 } });
  await expect(page.getByRole("heading", { name: "From 0 B on" })).toBeVisible();
  await expect(page.getByText("First block, LBA 0")).toBeVisible();
  await expect(page.getByText(/vdrive [12]/).first()).toBeVisible();
  await map.press("ArrowRight");
  await expect(page.getByRole("heading", { name: "From 2 MiB on" })).toBeVisible();
  await map.press("ArrowLeft");
  await map.press("Enter");
  await expect(page.getByRole("heading", { name: "0 B to 512 MiB, 1 MiB per square" })).toBeVisible();
  await page.getByRole("button", { name: "Whole volume" }).click();
  await expect(page.getByRole("heading", { name: "0 B to 8 GiB, 2 MiB per square" })).toBeVisible();
});

test("what is written lights up on the map while one looks", async ({ page, daemon }) => {
  daemon.fill();
  await logIn(page, daemon, "viewer");
  await page.goto(`${daemon.url}#/map/tank/db-main`);
  const map = page.getByRole("application", { name: "Map of tank/db-main" });
  await expect(map).toBeVisible();
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
  await expect.poll(colours).toBe(1);
  daemon.load();
  await expect.poll(colours).toBeGreaterThan(3);
});
