// What is committed in web/dist stays small enough for a slow link.
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SCRIPT_MAX = 450 * 1024;

test("the page's script has at most 450 KiB", () => {
  const { size } = statSync(join(import.meta.dirname, "../dist/assets/page.js"));
  expect(size).toBeLessThanOrEqual(SCRIPT_MAX);
});
