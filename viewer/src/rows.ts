// From tracks to lines of the screen: processes, their threads or lanes, and the rows of depth in each.

import type { Counter, Trace, Track } from "./model";
import { formatCount, formatShortCount, printable } from "./format";

export const DEPTH_HEIGHT = 18;
export const PROCESS_HEIGHT = 26;
export const TRACK_PADDING = 6;
export const COUNTER_HEIGHT = 44;
/** Height of a closed track: a row with names would promise more than its depth 0. */
export const CLOSED_HEIGHT = DEPTH_HEIGHT;

interface LineBase {
  key: string;
  y: number;
  height: number;
  label: string;
  detail: string;
  /** More words, for a tooltip. */
  title: string;
}

export interface ProcessLine extends LineBase {
  kind: "process";
  file: number;
  open: boolean;
}

export interface TrackLine extends LineBase {
  kind: "track";
  track: Track;
  open: boolean;
  /** Number of depth rows that are visible. */
  depths: number;
}

export interface CounterLine extends LineBase {
  kind: "counter";
  counter: Counter;
}

export type Line = ProcessLine | TrackLine | CounterLine;

export interface Layout {
  lines: Line[];
  height: number;
  /** Number of rows (track and depth) in open lines. */
  rows: number;
  byTrack: Map<number, TrackLine>;
}

function processKey(track: Track): string {
  return `${track.file}/${track.process ?? ""}`;
}

/** Lays out a trace; `closed` has the keys of lines that a person closed. */
export function layOut(trace: Trace, closed: ReadonlySet<string>): Layout {
  const groups = new Map<string, Track[]>();
  for (const track of trace.tracks) {
    const key = processKey(track);
    const group = groups.get(key);
    if (group) group.push(track);
    else groups.set(key, [track]);
  }
  const layout: Layout = { lines: [], height: 0, rows: 0, byTrack: new Map() };
  for (const counter of trace.counters.filter((item) => item.track === null)) addCounter(layout, counter);
  for (const [key, tracks] of groups) addProcess(layout, trace, key, tracks, closed);
  return layout;
}

function push(layout: Layout, line: Line): void {
  layout.lines.push(line);
  layout.height += line.height;
}

function addProcess(layout: Layout, trace: Trace, key: string, tracks: Track[], closed: ReadonlySet<string>): void {
  const first = tracks[0];
  if (first === undefined) return;
  const processKeyName = `p${key}`;
  const open = !closed.has(processKeyName);
  const slices = tracks.reduce((sum, track) => sum + track.slices, 0);
  push(layout, {
    kind: "process",
    file: first.file,
    key: processKeyName,
    y: layout.height,
    height: PROCESS_HEIGHT,
    open,
    label: processLabel(trace, first),
    detail: `${plural(tracks.length, first.thread === null && first.lane !== null ? "lane" : "thread")}`,
    title: `${formatCount(slices)} slices and instants`,
  });
  if (!open) return;
  for (const track of tracks) {
    addTrack(layout, track, !closed.has(`t${track.id}`));
    for (const counter of trace.counters.filter((item) => item.track === track.id)) addCounter(layout, counter);
  }
}

function addTrack(layout: Layout, track: Track, open: boolean): void {
  const depths = open ? track.depth : 1;
  const line: TrackLine = {
    kind: "track",
    key: `t${track.id}`,
    y: layout.height,
    height: (open ? depths * DEPTH_HEIGHT : CLOSED_HEIGHT) + TRACK_PADDING,
    open,
    depths,
    track,
    label: trackLabel(track),
    detail: formatShortCount(track.slices),
    title: `${formatCount(track.slices)} slices and instants, ${plural(track.depth, "row")}`,
  };
  layout.rows += depths;
  layout.byTrack.set(track.id, line);
  push(layout, line);
}

function addCounter(layout: Layout, counter: Counter): void {
  push(layout, { kind: "counter", key: `c${counter.id}`, y: layout.height, height: COUNTER_HEIGHT, label: printable(counter.name, 80), detail: "counter", title: "counter", counter });
}

function processLabel(trace: Trace, track: Track): string {
  const file = trace.files.length > 1 ? `${baseName(trace.files[track.file]?.name ?? "")}: ` : "";
  if (track.processName !== null && track.processName !== "") {
    return printable(`${file}${track.processName}${track.process === null ? "" : ` (${track.process})`}`, 120);
  }
  if (track.process !== null) return `${file}Process ${track.process}`;
  return printable(file === "" ? baseName(trace.files[track.file]?.name ?? "Trace") : file.slice(0, -2), 120);
}

export function trackLabel(track: Track): string {
  if (track.name !== "") return printable(track.name, 120);
  if (track.thread !== null) return `Thread ${track.thread}`;
  if (track.lane !== null) return `Lane ${track.lane}`;
  return `Track ${track.id}`;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** The lines that a window of the scrolled area shows: indices `[first, end)`. */
export function visibleLines(layout: Layout, top: number, height: number): [number, number] {
  const { lines } = layout;
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const line = lines[middle] as Line;
    if (line.y + line.height <= top) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < lines.length && (lines[end] as Line).y < top + height) end++;
  return [low, end];
}

/** The y of a depth row, from the top of the scrolled area. */
export function depthY(line: TrackLine, depth: number): number {
  return line.y + TRACK_PADDING / 2 + Math.min(depth, line.depths - 1) * DEPTH_HEIGHT;
}
