import { expect, test } from "vitest";
import { readArrows, readTrace } from "../../src/model";

const TRACE = {
  version: 1, complete: true, progress: 1, error: null, unit: "tick", range: { start: 0, end: 9 }, tracks: [], slices: 0, instants: 0,
  files: [{ index: 0, name: "a.xray", format: "xray", bytes: 5, damage: 2 }], counters: [], sql: false, sections: [],
};

test("damage without a time is counted and has no place on the axis", () => {
  const damage = [
    { file: 0, start: null, end: null, text: "byte 0x20: a buffer is cut" },
    { file: 0, start: 3, end: 4, text: "byte 0x40: unknown record" },
  ];
  const trace = readTrace({ ...TRACE, damage });
  expect(trace.damage).toEqual([{ file: 0, start: 3, end: 4, text: "byte 0x40: unknown record" }]);
  expect(trace.files[0]?.damage).toBe(2);
});

test("arrows have two ends; a trace says whether it has any", () => {
  const end = { track: 1, depth: 2, start: 3, end: 9, at: 9 };
  expect(readArrows([{ from: end, to: { ...end, at: 12, name: 4 } }])).toEqual([{ from: end, to: { ...end, at: 12 } }]);
  expect(readArrows(undefined)).toEqual([]);
  expect([readTrace(TRACE).hasArrows, readTrace({ ...TRACE, has_arrows: true }).hasArrows]).toEqual([false, true]);
});
