import { expect, test } from "vitest";
import { actionOf, type Pressed } from "./shortcuts";

const key = (name: string, more: Partial<Pressed> = {}): Pressed => ({
  key: name,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...more,
});
const IDLE = { isTyping: false, isAfterG: false, single: true };

test("Ctrl-K opens the search, in a field and without single keys too", () => {
  const state = { isTyping: true, isAfterG: false, single: false };
  expect(actionOf(key("k", { ctrlKey: true }), state)).toEqual({ open: "search" });
  expect(actionOf(key("K", { metaKey: true }), state)).toEqual({ open: "search" });
  expect(actionOf(key("k", { ctrlKey: true, altKey: true }), IDLE)).toBeUndefined();
});

test("single keys work outside of fields, unless they are turned off", () => {
  expect(actionOf(key("?"), IDLE)).toEqual({ open: "help" });
  expect(actionOf(key("/"), IDLE)).toEqual({ open: "search" });
  expect(actionOf(key("?"), { ...IDLE, isTyping: true })).toBeUndefined();
  expect(actionOf(key("?"), { ...IDLE, single: false })).toBeUndefined();
});

test("g and a letter go to a page", () => {
  expect(actionOf(key("g"), IDLE)).toEqual({ wait: true });
  expect(actionOf(key("v"), { ...IDLE, isAfterG: true })).toEqual({ to: "volumes" });
  expect(actionOf(key("o"), { ...IDLE, isAfterG: true })).toEqual({ to: "" });
  expect(actionOf(key("v"), IDLE)).toBeUndefined();
  expect(actionOf(key("v", { ctrlKey: true }), { ...IDLE, isAfterG: true })).toBeUndefined();
});
