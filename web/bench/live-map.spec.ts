// The live map of a pool of 24 TiB under load: frames, first paint, bytes on the wire, and the daemon's processor time
// for one viewer. It prints a table.
import { readFileSync, readdirSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { test as base, type Page } from "@playwright/test";
import { Daemon } from "../tests/daemon";
import { logIn } from "../tests/fixtures";

const CONVECT = process.env["CONVECT"]!;
const LAB = join(dirname(CONVECT), "convect-lab");
/** How long one look lasts, in seconds. */
const SECONDS = Number(process.env["CONVECT_BENCH_SECONDS"] ?? 10);
/** How often one looks and looks away, for each view. */
const ROUNDS = Number(process.env["CONVECT_BENCH_ROUNDS"] ?? 5);
/** Requests a second of the load on each of the loaded volumes. */
const RATE = 250;
const LOADED = ["v01", "v02", "v03", "v04"];
const VOLUMES = 12;

const test = base.extend<{ daemon: Daemon }>({
  daemon: async ({}, use) => {
    const daemon = await Daemon.start([`ram_tier = "256M"`, `threads = 1`]);
    await use(daemon);
    await daemon.stop();
  },
});

/** Two mirrored fast drives, four modelled disks of 6 TiB, and volumes of 2 TiB, four of them under load. */
function fill(daemon: Daemon): void {
  const disk = (name: string, seed: number) => `model:hdd-7200,seed=${seed}:${daemon.file(name, "6T")}`;
  daemon.convect(
    ...["pool", "create", "tank", "fast", "mirror", daemon.file("f1", "64G"), daemon.file("f2", "64G")],
    ...["slow", "stripe", disk("s1", 1), disk("s2", 2), disk("s3", 3), disk("s4", 4)],
  );
  for (let number = 1; number <= VOLUMES; number += 1) {
    daemon.convect("volume", "create", `tank/v${String(number).padStart(2, "0")}`, "--size", "2T");
  }
  for (const name of LOADED) {
    const socket = daemon.path(`${name}.sock`);
    daemon.convect("export", "create", name, `tank/${name}`, "nbd", "--listen", `unix:${socket}`);
    daemon.beside(
      ...[LAB, "load", `nbd+unix:///${name}?socket=${socket}`, "--overwrite", "--reads", "70"],
      ...["--pattern", "zipf:0.9", "--rate", String(RATE), "--seconds", "3600"],
    );
  }
}

/** Processor time of a process so far, in seconds. */
function processorTime(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const nanoseconds = readdirSync(tasks).map((task) =>
    Number(readFileSync(join(tasks, task, "schedstat"), "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e9;
}

/** Processor time of a process over a while, in percent of a core. */
async function busy(pid: number, seconds: number): Promise<number> {
  const [from, began] = [processorTime(pid), performance.now()];
  await sleep(seconds * 1000);
  return ((processorTime(pid) - from) * 100_000) / (performance.now() - began);
}

const median = (of: number[]): number => of.toSorted((a, b) => a - b)[Math.floor(of.length / 2)]!;

/** A way to `url` that counts the bytes that come back, as they are on the wire: with TLS. */
async function counted(url: string): Promise<{ url: string; bytes: () => number; close: () => void }> {
  const target = new URL(url);
  const port = Number(target.port);
  let bytes = 0;
  const server = createServer((from) => {
    const to = connect(port, target.hostname);
    to.on("data", (part) => (bytes += part.length));
    from.pipe(to).pipe(from);
    from.on("error", () => to.destroy());
    to.on("error", () => from.destroy());
  });
  await new Promise<void>((done) => server.listen(0, target.hostname, done));
  target.port = String((server.address() as AddressInfo).port);
  return { url: target.href, bytes: () => bytes, close: () => server.close() };
}

/** What a page counts of itself: when it first shows a map, and its frames. */
function watch(): void {
  const seen = { painted: 0, frames: 0, longest: 0, drawn: 0, before: 0 };
  Object.assign(globalThis, { seen });
  const draw = CanvasRenderingContext2D.prototype.putImageData;
  let drew = false;
  CanvasRenderingContext2D.prototype.putImageData = new Proxy(draw, {
    apply: (target, canvas, words) => {
      drew = true;
      return Reflect.apply(target, canvas, words) as void;
    },
  });
  const frame = (now: number) => {
    seen.frames += 1;
    if (seen.before > 0) seen.longest = Math.max(seen.longest, now - seen.before);
    seen.before = now;
    if (drew) {
      seen.drawn += 1;
      seen.painted ||= performance.now();
    }
    drew = false;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

interface Seen {
  painted: number;
  frames: number;
  longest: number;
  drawn: number;
}
const seen = (page: Page) => page.evaluate(() => ({ ...(globalThis as unknown as { seen: Seen }).seen }));
const again = (page: Page) =>
  page.evaluate(() => Object.assign((globalThis as unknown as { seen: Seen }).seen, { longest: 0 }));

test("live map of 24 TiB", async ({ browser, daemon }) => {
  fill(daemon);
  const pid = daemon.process.pid!;
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    viewport: { width: 1280, height: 800 },
  });
  const way = await counted(daemon.url);
  const home = await context.newPage();
  await logIn(home, daemon, "viewer", way.url);
  await home.close();
  await sleep(5_000);
  const row = (...cells: string[]) => process.stdout.write(`| ${cells.join(" | ")} |\n`);
  process.stdout.write("\n");
  row(
    "view",
    "first map",
    "frames/s",
    "longest",
    "drawn/s",
    "KiB/s at first",
    "KiB/s then",
    "daemon, % of a core",
  );
  for (const [view, path] of [
    ["all volumes", "#/map"],
    ["one volume", "#/map/tank/v01"],
  ] as const) {
    const rows: number[][] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const without = await busy(pid, SECONDS);
      const page = await context.newPage();
      await page.addInitScript(watch);
      const [before, began] = [way.bytes(), performance.now()];
      await page.goto(`${way.url}${path}`);
      await page.waitForFunction(() => (globalThis as unknown as { seen: Seen }).seen.painted > 0);
      const { painted } = await seen(page);
      await sleep(2_000);
      const first = (way.bytes() - before) / 1024 / ((performance.now() - began) / 1000);
      await again(page);
      const [from, sent, since] = [await seen(page), way.bytes(), performance.now()];
      const within = await busy(pid, SECONDS);
      const elapsed = (performance.now() - since) / 1000;
      const to = await seen(page);
      rows.push([
        painted / 1000,
        (to.frames - from.frames) / elapsed,
        to.longest,
        (to.drawn - from.drawn) / elapsed,
        first,
        (way.bytes() - sent) / 1024 / elapsed,
        within - without,
        without,
      ]);
      await page.close();
    }
    const at = (column: number) => median(rows.map((of) => of[column]!));
    const cost = rows.map((of) => of[6]!).toSorted((a, b) => a - b);
    const spread = `${cost[0]!.toFixed(2)} to ${cost.at(-1)!.toFixed(2)}; ${at(7).toFixed(1)} without`;
    row(
      view,
      `${at(0).toFixed(2)} s`,
      at(1).toFixed(1),
      `${at(2).toFixed(0)} ms`,
      at(3).toFixed(1),
      at(4).toFixed(0),
      at(5).toFixed(1),
      `${at(6).toFixed(2)} (${spread})`,
    );
  }
  way.close();
});
