// A real daemon for a test, in a folder of its own: its page, its command line, and a load on one of its volumes.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const BINARY = process.env["CONVECT"] ?? join(import.meta.dirname, "../../target/debug/convect");
/** Longest that a daemon takes to begin or end, in milliseconds. */
const PATIENCE = 180_000;

/** A port of the loopback that nobody listens at, and that the system gives to nobody who asks for any. */
export async function freePort(): Promise<number> {
  const range = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8");
  const end = Math.max(Number(range.split(/\s/)[0]), 4096);
  for (;;) {
    const port = randomInt(1024, end);
    const isFree = await new Promise<boolean>((done) => {
      const probe = createServer();
      probe.once("error", () => done(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => done(true)));
    });
    if (isFree) return port;
  }
}

export type Role = "viewer" | "operator" | "admin";

export class Daemon {
  private constructor(
    readonly folder: string,
    readonly url: string,
    readonly process: ChildProcess,
    private loads: ChildProcess[] = [],
  ) {}

  /** `settings` are those of its configuration beside where it listens and keeps its state. */
  static async start(
    settings: string[] = [`ram_tier = "32M"`, `map_cache = "32M"`, `threads = 1`],
  ): Promise<Daemon> {
    const folder = mkdtempSync(join(tmpdir(), "convect-page-"));
    writeFileSync(
      join(folder, "convect.toml"),
      [
        `socket = "${folder}/c.sock"`,
        `state_dir = "${folder}/state"`,
        `listen = "127.0.0.1:0"`,
        `remote_paths = { sockets = ["${folder}"] }`,
        ...settings,
      ].join("\n"),
    );
    const daemon = spawn(BINARY, ["serve", "--config", join(folder, "convect.toml")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    daemon.stderr.on("data", (part: Buffer) => {
      log += part.toString();
    });
    const until = Date.now() + PATIENCE;
    for (;;) {
      const found = /the page is at (https:\/\/\S+)/.exec(log);
      if (found) {
        const started = new Daemon(folder, found[1]!, daemon);
        if (started.answers()) return started;
      }
      if (Date.now() > until || daemon.exitCode !== null) throw new Error(`no daemon: ${log}`);
      await sleep(50);
    }
  }

  private answers(): boolean {
    try {
      this.convect("token", "list");
      return true;
    } catch {
      return false;
    }
  }

  /** The command line, with what it prints. */
  convect(...words: string[]): string {
    const env = { ...process.env, CONVECT_SOCKET: join(this.folder, "c.sock") };
    return execFileSync(BINARY, words, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  token(role: Role, name: string = role): string {
    return this.convect("token", "create", name, "--role", role).trim();
  }

  /** A file of the daemon's folder, as a drive. */
  file(name: string, size: string): string {
    return `file:${join(this.folder, name)}?size=${size}`;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  read(name: string): string {
    return readFileSync(join(this.folder, name), "utf8");
  }

  /** A tiered pool with modelled disks, three volumes, a snapshot, a clone, a schedule and exports. */
  fill(): void {
    const disk = (name: string, seed: number) => `model:hdd-7200,seed=${seed}:${this.file(name, "2G")}`;
    this.convect(
      ...["pool", "create", "tank", "fast", "mirror", this.file("f1", "512M"), this.file("f2", "512M")],
      ...["slow", "stripe", disk("s1", 1), disk("s2", 2)],
    );
    for (const [name, size] of [
      ["web-01", "2G"],
      ["db-main", "8G"],
      ["backup", "64G"],
    ] as const) {
      this.convect("volume", "create", `tank/${name}`, "--size", size);
    }
    this.convect("snapshot", "create", "tank/db-main@before-upgrade");
    this.convect("snapshot", "clone", "tank/db-main@before-upgrade", "db-test");
    this.convect("snapshot", "schedule", "set", "tank/db-main@hourly", "--every", "1h", "--keep", "24");
    this.convect(
      "export",
      "create",
      "web-01",
      "tank/web-01",
      "vhost-user-blk",
      "--path",
      this.path("web.sock"),
    );
    this.convect(
      "export",
      "create",
      "db-main",
      "tank/db-main",
      "nbd",
      "--listen",
      `unix:${this.path("db.sock")}`,
    );
    this.convect("export", "create", "far", "tank/backup", "iscsi", "--portal", "127.0.0.1:0");
  }

  /**
   * Writes 128 MiB of the export `db-main` once, in squares all over its map, then reads and writes mostly a small part
   * of it, until the end. Between, it leaves the processor to the page: for pictures it writes 2 GiB and hardly waits.
   */
  load(): void {
    const [first, batch, pause_ms] = process.env["CONVECT_PICTURES"] ? [2048, 32, 20] : [128, 8, 100];
    const client = spawn("qemu-io", ["-f", "raw", `nbd+unix:///?socket=${this.path("db.sock")}`], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    let turn = 0;
    const next = () => {
      const lines = [];
      for (let at = 0; at < batch; at += 1, turn += 1) {
        if (turn < first) lines.push(`write -P ${turn % 251} ${(turn * 3 * (2048 / first)) % 6144}M 1M`);
        const place = turn % 4 === 0 ? (turn * 7919) % 6144 : (turn * 31) % 96;
        lines.push(`${turn % 8 === 1 ? "write" : "read"} ${place * 1024 + ((turn * 5) % 16) * 64}k 64k`);
      }
      if (client.exitCode === null)
        client.stdin?.write(`${lines.join("\n")}\n`, () => setTimeout(next, pause_ms));
    };
    client.stdin?.on("error", () => undefined);
    next();
    this.loads.push(client);
  }

  /** A program that uses the daemon until the end. */
  beside(program: string, ...words: string[]): void {
    this.loads.push(spawn(program, words, { stdio: ["ignore", "ignore", "inherit"] }));
  }

  async stop(): Promise<void> {
    for (const load of this.loads) load.kill("SIGKILL");
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process.kill("SIGKILL"), PATIENCE);
    await ended;
    clearTimeout(late);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
