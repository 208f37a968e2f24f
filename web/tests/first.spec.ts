// From a fresh start to a volume that a virtual machine can attach, on the page alone.
import { connect } from "node:net";
import type { Locator } from "@playwright/test";
import { expect, test } from "./fixtures";

const CLICKS_MAX = 12;

test("from a fresh start to a disk of a virtual machine in at most twelve clicks", async ({
  page,
  daemon,
}) => {
  const token = daemon.token("admin");
  let clicks = 0;
  const click = async (what: Locator) => {
    clicks += 1;
    await what.click();
  };
  // Each field that is not reached by itself takes a click, too.
  const write = async (what: Locator, text: string) => {
    if (!(await what.evaluate((field) => field === document.activeElement))) await click(what);
    await what.fill(text);
  };
  await page.goto(daemon.url);
  await write(page.getByLabel("Token"), token);
  await click(page.getByRole("button", { name: "Log in" }));

  await click(page.getByRole("button", { name: "Create a pool" }));
  await write(
    page.getByLabel("Fast drives, one per line"),
    `${daemon.file("a", "256M")}\n${daemon.file("b", "256M")}`,
  );
  await write(
    page.getByLabel("Slow drives, one per line"),
    `model:hdd-7200,seed=1:${daemon.file("c", "1G")}\nmodel:hdd-7200,seed=2:${daemon.file("d", "1G")}`,
  );
  await click(page.getByRole("button", { name: "Create pool" }));
  await expect(page.getByRole("region", { name: "Health" })).toContainText("1 pool");

  await click(page.getByRole("button", { name: "New volume" }));
  await write(page.getByLabel("Name"), "vm1");
  await write(page.getByLabel("Size"), "10G");
  const socket = daemon.path("vm1.sock");
  await write(page.getByLabel("Socket for the virtual machine"), socket);
  await click(page.getByRole("button", { name: "Create volume" }));

  const commands = page.getByLabel("Commands for QEMU", { exact: true });
  await expect(commands).toContainText(`path=${socket}`);
  await expect(commands).toContainText("vhost-user-blk-pci");
  await new Promise<void>((done, failed) => {
    const monitor = connect(socket, () => {
      monitor.destroy();
      done();
    });
    monitor.once("error", failed);
  });
  expect(daemon.convect("volume", "list", "--json")).toContain('"size": 10737418240');
  expect(clicks).toBeLessThanOrEqual(CLICKS_MAX);
  console.log(`clicks: ${clicks}`);
});
