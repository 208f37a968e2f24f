import react from "@vitejs/plugin-react";
import { join } from "node:path";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const RUNTIME = join(import.meta.dirname, "src/jsx/runtime.ts");

/** The page's elements call the constants of `src/jsx/runtime.ts`, which makes the script smaller. */
const shortJsx: Plugin = {
  name: "short-jsx",
  apply: "build",
  enforce: "pre",
  resolveId: (id, importer) =>
    id === "react/jsx-runtime" && importer !== RUNTIME && !importer?.includes("node_modules")
      ? RUNTIME
      : null,
};

// The names of what is built are fixed, as the daemon's sources name them (crates/daemon/src/http/page.rs).
export default defineConfig({
  plugins: [shortJsx, react()],
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
