import { expect, test } from "vitest";
import { NOTHING_KEPT, readFragment, writeFragment, type Kept } from "../../src/url";

const FULL: Kept = {
  view: { start: 1_000_000_000.25, end: 1_000_000_900 },
  mark: { start: 5, end: 6.5 },
  slice: { track: 3, depth: 2, start: 123 },
  notes: [{ at: 7, text: "a, b & c = #\u202e" }, { at: 8, text: "two" }],
  closed: ["p0/100", "t5"],
  tab: "sql",
  theme: "dark",
  query: "/a|b/",
  sql: "SELECT '%' AS x\nFROM spans",
  moved: [0, -1500],
  perfetto: null,
};

test("what is written is read", () => {
  expect(readFragment(`#${writeFragment(FULL)}`)).toEqual(FULL);
  expect(readFragment(writeFragment(NOTHING_KEPT))).toEqual(NOTHING_KEPT);
});

test("addresses that people cut or typed are read as far as they make sense", () => {
  expect(readFragment("#start=5&end=4").view).toBeNull();
  expect(readFragment("#start=a&end=4").view).toBeNull();
  expect(readFragment("#start=1&end=Infinity").view).toBeNull();
  expect(readFragment("#slice=1,2").slice).toBeNull();
  expect(readFragment("#note=x,y&note=5,ok&theme=pink").notes).toEqual([{ at: 5, text: "ok" }]);
  expect(readFragment("#%E0%A4%A").view).toBeNull();
});

test("long notes and many of them are cut", () => {
  const notes = Array.from({ length: 500 }, (_note, i) => ({ at: i, text: "x".repeat(1000) }));
  const kept = readFragment(writeFragment({ ...NOTHING_KEPT, notes }));
  expect(kept.notes.length).toBe(100);
  expect(kept.notes[0]?.text.length).toBe(200);
});

test("files are moved by whole numbers that places have room for", () => {
  expect(readFragment("#moved=1.6,x,,1e30,-4").moved).toEqual([2, 0, 0, 0, -4]);
  expect(readFragment("#moved=").moved).toEqual([]);
  expect(writeFragment({ ...NOTHING_KEPT, moved: [0, 0] })).not.toContain("moved");
});

test("the window for Perfetto has a unit or is the trace's own", () => {
  expect(readFragment("#perfetto=1").perfetto).toEqual({ from: null, to: null });
  expect(readFragment("#perfetto=1&from=1500ns&to=42").perfetto).toEqual({ from: { unit: "ns", value: 1500 }, to: { unit: "own", value: 42 } });
  expect(readFragment("#perfetto=1&from=soon&to=").perfetto).toEqual({ from: null, to: null });
  expect(readFragment("#from=1&to=2").perfetto).toBeNull();
});
