import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

// Benchmarks in the browser, which print tables and judge nothing.
export default defineConfig({ ...tests, testDir: "bench", workers: 1, timeout: 1_800_000, reporter: "line" });
