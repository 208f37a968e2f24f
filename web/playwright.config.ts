import { defineConfig } from "@playwright/test";

// Debian's Chromium, against the real daemon (tests/daemon.ts). Each test has a daemon of its own, with its ports and
// folder, so that they run side by side; most of their time is waiting. The times bound only what hangs: a busy machine
// may be many times slower.
export default defineConfig({
  testDir: "tests",
  workers: 2,
  timeout: 900_000,
  expect: { timeout: 90_000 },
  reporter: [["list"]],
  outputDir: "test-results",
  use: {
    browserName: "chromium",
    headless: true,
    ignoreHTTPSErrors: true,
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      // An emulated graphics processor costs an eighth more than none.
      args: ["--no-sandbox", "--disable-gpu"],
    },
  },
});
