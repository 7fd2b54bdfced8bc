// What the address keeps behind `#`: the view, the mark, notes and what is open. Reading never fails: an address is
// typed and cut by people.

import type { Range } from "./model";

export interface Note {
  at: number;
  text: string;
}

export interface SliceRef {
  track: number;
  depth: number;
  start: number;
}

export interface Kept {
  view: Range | null;
  mark: Range | null;
  slice: SliceRef | null;
  notes: Note[];
  closed: string[];
  tab: string | null;
  theme: "light" | "dark" | null;
  query: string;
  sql: string;
  /** By how much each file is moved on the axis. */
  moved: number[];
  /** `anytrace view --perfetto`: the window for Perfetto's own page. Written by the command, never by the page. */
  perfetto: PerfettoWindow | null;
}

/** A time as the command line has it: the trace's own number, nanoseconds from its start, or open. */
export type Bound = { unit: "own" | "ns"; value: number } | null;

export interface PerfettoWindow {
  from: Bound;
  to: Bound;
}

export const NOTHING_KEPT: Kept = { view: null, mark: null, slice: null, notes: [], closed: [], tab: null, theme: null, query: "", sql: "", moved: [], perfetto: null };

/** Longer texts are cut: browsers take addresses of some ten thousand characters. */
const NOTE_CHARACTERS_MAX = 200;
const NOTES_MAX = 100;
const FILES_MAX = 1000;
/** Places beyond this are not exact. */
export const MOVED_MAX = 2 ** 52;
const SQL_CHARACTERS_MAX = 4000;

export function writeFragment(kept: Kept): string {
  const parts = new URLSearchParams();
  if (kept.view) {
    parts.set("start", String(kept.view.start));
    parts.set("end", String(kept.view.end));
  }
  if (kept.mark) parts.set("mark", `${kept.mark.start},${kept.mark.end}`);
  if (kept.slice) parts.set("slice", `${kept.slice.track},${kept.slice.depth},${kept.slice.start}`);
  for (const note of kept.notes.slice(0, NOTES_MAX)) parts.append("note", `${note.at},${note.text.slice(0, NOTE_CHARACTERS_MAX)}`);
  if (kept.closed.length > 0) parts.set("closed", kept.closed.join(","));
  if (kept.tab) parts.set("tab", kept.tab);
  if (kept.theme) parts.set("theme", kept.theme);
  if (kept.query) parts.set("q", kept.query.slice(0, NOTE_CHARACTERS_MAX));
  if (kept.moved.some((offset) => offset !== 0)) parts.set("moved", kept.moved.slice(0, FILES_MAX).join(","));
  if (kept.sql) parts.set("sql", kept.sql.slice(0, SQL_CHARACTERS_MAX));
  return parts.toString();
}

export function readFragment(fragment: string): Kept {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const theme = parts.get("theme");
  return {
    view: readRange(parts.get("start"), parts.get("end")),
    mark: readPair(parts.get("mark")),
    slice: readSlice(parts.get("slice")),
    notes: parts.getAll("note").slice(0, NOTES_MAX).flatMap(readNote),
    closed: (parts.get("closed") ?? "").split(",").filter((key) => key !== ""),
    tab: parts.get("tab"),
    theme: theme === "light" || theme === "dark" ? theme : null,
    query: parts.get("q") ?? "",
    sql: parts.get("sql") ?? "",
    moved: readMoved(parts.get("moved")),
    perfetto: parts.has("perfetto") ? { from: readBound(parts.get("from")), to: readBound(parts.get("to")) } : null,
  };
}

function readBound(text: string | null): Bound {
  const unit = text?.endsWith("ns") ? "ns" : "own";
  const value = readNumber(text?.replace(/ns$/, ""));
  return value === null ? null : { unit, value };
}

/** Whole numbers: a file without one is not moved. */
function readMoved(text: string | null): number[] {
  if (text === null || text === "") return [];
  return text.split(",").slice(0, FILES_MAX).map((one) => {
    const offset = Math.round(readNumber(one) ?? 0);
    return Math.abs(offset) <= MOVED_MAX ? offset : 0;
  });
}

function readNumber(text: string | null | undefined): number | null {
  if (text === null || text === undefined || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

function readRange(first: string | null | undefined, last: string | null | undefined): Range | null {
  const start = readNumber(first);
  const end = readNumber(last);
  return start !== null && end !== null && start < end ? { start, end } : null;
}

function readPair(text: string | null): Range | null {
  const [first, last] = (text ?? "").split(",");
  return readRange(first, last);
}

function readSlice(text: string | null): SliceRef | null {
  const [track, depth, start] = (text ?? "").split(",").map(readNumber);
  if (track === null || track === undefined || depth === null || depth === undefined || start === null || start === undefined) return null;
  return { track, depth, start };
}

function readNote(text: string): Note[] {
  const comma = text.indexOf(",");
  const at = comma > 0 ? readNumber(text.slice(0, comma)) : null;
  return at === null ? [] : [{ at, text: text.slice(comma + 1, comma + 1 + NOTE_CHARACTERS_MAX) }];
}
