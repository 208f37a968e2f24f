// Everything that can be changed by the interface can be changed on the page.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** What the page does without, and why. */
const WITHOUT: Record<string, string> = {
  "post /v1/drives/probe": "only looks at a drive; the page lists drives and what they bear",
};

interface OpenApi {
  paths: Record<string, Record<string, unknown>>;
}

function sources(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.includes(".test."))
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("\n");
}

function changes(): string[] {
  const file = join(import.meta.dirname, "../../../docs/api/openapi.json");
  const { paths } = JSON.parse(readFileSync(file, "utf8")) as OpenApi;
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => ["post", "put", "delete"].includes(method))
      .map((method) => `${method} ${path}`),
  );
}

test("every operation that changes something is asked for by some part of the page", () => {
  const text = sources(join(import.meta.dirname, ".."));
  const all = changes();
  expect(all.length).toBeGreaterThan(40);
  const lacking = all.filter((change) => {
    const [method = "", path = ""] = change.split(" ");
    const quoted = path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const call = method === "post" ? "(api\\s*\\.post|upload)" : `api\\s*\\.${method}`;
    return !new RegExp(`${call}\\(\\s*"${quoted}"`).test(text);
  });
  expect(lacking).toEqual(Object.keys(WITHOUT));
});
