import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The names of what is built are fixed, as the daemon's sources name them (crates/daemon/src/http/page.rs).
export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        entryFileNames: "assets/page.js",
        assetFileNames: "assets/page[extname]",
        codeSplitting: false,
      },
    },
  },
  // What is tested are functions, which keep nothing between tests: a process for each file took five times as long.
  test: { include: ["src/**/*.test.ts"], pool: "threads", isolate: false, maxWorkers: 1 },
});
