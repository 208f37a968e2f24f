import { expect, test } from "vitest";
import { changed } from "./parameters";

test("only what became another is changed, and what was taken away is told as empty", () => {
  const before = { portal: "a", user: "bob" };
  expect(changed(before, { ...before })).toEqual({});
  expect(changed(before, { portal: " b ", user: "", queues: "" })).toEqual({ portal: "b", user: "" });
  expect(changed(before, { ...before, queues: "4" })).toEqual({ queues: "4" });
});
