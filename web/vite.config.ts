import react from "@vitejs/plugin-react";
import { createRequire } from "node:module";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const REACT = ["react", "react/jsx-runtime"];
const FLAT = "\0flat:";

/**
 * React's functions as constants of a module of their own: the bundler calls those by a letter, and what a CommonJS module
 * exports as `(0,M.jsx)`, seven bytes more at each of a thousand elements.
 */
const flatReact: Plugin = {
  name: "flat-react",
  apply: "build",
  enforce: "pre",
  resolveId: (id, importer) =>
    REACT.includes(id) && importer?.startsWith(`${import.meta.dirname}/src/`) ? FLAT + id : null,
  load: (id) => {
    if (!id.startsWith(FLAT)) return null;
    const name = id.slice(FLAT.length);
    const names = Object.keys(createRequire(import.meta.url)(name) as object);
    const constants = names.filter((known) => /^[a-zA-Z]/.test(known));
    return [
      `import * as all from "${name}";`,
      ...constants.map((known) => `export const ${known} = all.${known};`),
    ].join("\n");
  },
};

// The names of what is built are fixed, as the daemon's sources name them (crates/daemon/src/http/page.rs).
export default defineConfig({
  plugins: [flatReact, react()],
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
