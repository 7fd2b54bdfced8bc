import { expect, test } from "vitest";
import { readTrace } from "../../src/model";
import { CLOSED_HEIGHT, DEPTH_HEIGHT, depthY, layOut, PROCESS_HEIGHT, TRACK_PADDING, trackLabel, visibleLines } from "../../src/rows";

const TRACK = { file: 0, process: 7, process_name: "app", thread: 8, lane: null, name: "", depth: 3, slices: 10 };
const TRACE = readTrace({
  version: 1, complete: true, progress: 1, error: null, files: [{ index: 0, name: "/a/b.xray", format: "xray", bytes: 5, damage: 0 }], unit: "ns",
  ticks_per_second: null, wall_start_ns: null, range: { start: 0, end: 10 }, slices: 30, instants: 0, damage: [],
  counters: [{ id: 0, name: "memory", track: null }], sql: true, sections: [],
  tracks: [{ ...TRACK, id: 0 }, { ...TRACK, id: 1, process: null, process_name: null, lane: 2, thread: null }, { ...TRACK, id: 2, depth: 1, name: "main" }],
});

test("tracks of a process are together, in the order of the server", () => {
  const layout = layOut(TRACE, new Set());
  expect(layout.lines.map((line) => line.key)).toEqual(["c0", "p0/7", "t0", "t2", "p0/", "t1"]);
  expect(layout.rows).toBe(7);
  expect(layout.lines.map((line) => line.label)).toEqual(["memory", "app (7)", "Thread 8", "main", "b.xray", "Lane 2"]);
});

test("a process belongs to the file of its tracks", () => {
  const two = { ...TRACE, tracks: TRACE.tracks.map((track, i) => ({ ...track, file: i === 1 ? 1 : 0 })) };
  const files = layOut(two, new Set()).lines.map((line) => (line.kind === "process" ? line.file : null));
  expect(files.filter((file) => file !== null)).toEqual([0, 1]);
});

test("lines follow each other without gaps", () => {
  const layout = layOut(TRACE, new Set());
  layout.lines.forEach((line, i) => {
    const next = layout.lines[i + 1];
    expect(line.y + line.height).toBe(next?.y ?? layout.height);
  });
});

test("a closed track has one row, a closed process none", () => {
  const layout = layOut(TRACE, new Set(["t0", "p0/"]));
  expect(layout.byTrack.get(0)?.height).toBe(CLOSED_HEIGHT + TRACK_PADDING);
  expect(layout.byTrack.has(1)).toBe(false);
  expect(layout.rows).toBe(2);
});

test("visible lines are those that a window touches", () => {
  const layout = layOut(TRACE, new Set());
  expect(visibleLines(layout, 0, layout.height)).toEqual([0, layout.lines.length]);
  const [first, end] = visibleLines(layout, layout.lines[2]?.y ?? 0, 1);
  expect([first, end]).toEqual([2, 3]);
  expect(visibleLines(layout, layout.height + 10, 100)).toEqual([layout.lines.length, layout.lines.length]);
});

test("depths lie below each other inside of their line", () => {
  const layout = layOut(TRACE, new Set());
  const line = layout.byTrack.get(0);
  if (!line) throw new Error("track 0 is laid out");
  expect(depthY(line, 1) - depthY(line, 0)).toBe(DEPTH_HEIGHT);
  expect(depthY(line, 2) + DEPTH_HEIGHT).toBeLessThanOrEqual(line.y + line.height);
  expect(PROCESS_HEIGHT).toBeGreaterThan(DEPTH_HEIGHT);
});

test("names of tracks from a trace are printable", () => {
  const track = TRACE.tracks[0];
  if (!track) throw new Error("there is a track");
  expect(trackLabel({ ...track, name: "x\u202ey" })).toBe("x\\u{202e}y");
});
