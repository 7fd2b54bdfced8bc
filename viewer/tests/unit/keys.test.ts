import { expect, test } from "vitest";
import { actionOf, KEYS } from "../../src/keys";

const plain = { ctrlKey: false, metaKey: false, altKey: false };

test("keys have their actions, letters in both cases", () => {
  expect(actionOf({ key: "w", ...plain })).toBe("zoomIn");
  expect(actionOf({ key: "W", ...plain })).toBe("zoomIn");
  expect(actionOf({ key: "n", ...plain })).toBe("nextHit");
  expect(actionOf({ key: "N", ...plain })).toBe("previousHit");
  expect(actionOf({ key: "x", ...plain })).toBeNull();
});

test("the browser keeps its own shortcuts", () => {
  for (const modifier of ["ctrlKey", "metaKey", "altKey"] as const) expect(actionOf({ key: "f", ...plain, [modifier]: true })).toBeNull();
});

test("no key has two actions", () => {
  const keys = KEYS.flatMap((row) => row.keys);
  expect(new Set(keys).size).toBe(keys.length);
});
