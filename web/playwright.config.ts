import { defineConfig } from "@playwright/test";

// Debian's Chromium, against the real daemon (tests/daemon.ts). One worker: each test has a daemon of its own.
export default defineConfig({
  testDir: "tests",
  workers: 1,
  timeout: process.env["CONVECT_PICTURES"] ? 400_000 : 300_000,
  expect: { timeout: 15_000 },
  reporter: [["list"]],
  outputDir: "test-results",
  use: {
    browserName: "chromium",
    headless: true,
    ignoreHTTPSErrors: true,
    viewport: { width: 1280, height: 800 },
    launchOptions: { executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
  },
});
