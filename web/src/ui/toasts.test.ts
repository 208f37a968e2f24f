import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Toasts } from "./toasts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const texts = (toasts: Toasts) => toasts.all().map((toast) => toast.text);

test("a success disappears after a while, an error stays until it is closed", () => {
  const toasts = new Toasts();
  toasts.done("snapshot created");
  toasts.failed(new Error("busy"));
  expect(texts(toasts)).toEqual(["snapshot created", "busy"]);
  vi.advanceTimersByTime(60_000);
  expect(texts(toasts)).toEqual(["busy"]);
  toasts.close(toasts.all()[0]!.id);
  expect(texts(toasts)).toEqual([]);
});

test("the same error is shown once, and the number of messages is bounded", () => {
  const toasts = new Toasts();
  toasts.failed("unreachable");
  toasts.failed("unreachable");
  expect(texts(toasts)).toEqual(["unreachable"]);
  for (let at = 0; at < 9; at += 1) toasts.failed(`error ${at}`);
  expect(texts(toasts)).toEqual(["error 5", "error 6", "error 7", "error 8"]);
});
