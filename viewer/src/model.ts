// What the server says, as types, and the readers that check it. Times are in the trace's own unit.

import {
  asList, asNumber, asNumbers, asObject, asText, asTexts, optionalList, optionalNumber, optionalText,
  type Json, type JsonObject,
} from "./json";

export type Unit = "ns" | "tick" | "seq";

export interface Range {
  start: number;
  end: number;
}

export interface TraceFile {
  index: number;
  name: string;
  format: string;
  bytes: number;
  damage: number;
  /** By how much a person moved it on the axis. */
  moved: number;
}

export interface Track {
  id: number;
  file: number;
  process: number | null;
  processName: string | null;
  thread: number | null;
  lane: number | null;
  name: string;
  depth: number;
  slices: number;
}

/** A range that cannot be trusted (damage) or in which records are missing (loss). */
export interface Gap extends Range {
  file: number;
  text: string;
}

/** One end of an arrow: the slice it is at, and where it leaves or reaches it. */
export interface ArrowEnd extends Range {
  track: number;
  depth: number;
  at: number;
}

export interface Arrow {
  from: ArrowEnd;
  to: ArrowEnd;
}

export interface Counter {
  id: number;
  name: string;
  track: number | null;
}

export interface Trace {
  /** Grows with each change of what is shown here. */
  version: number;
  /** The server's own number of what it shows. */
  edition: number;
  complete: boolean;
  following: boolean;
  progress: number;
  error: string | null;
  files: TraceFile[];
  unit: Unit;
  ticksPerSecond: number | null;
  wallStartNs: bigint | null;
  /** The time of the traces that is at 0 of the axis: 0 unless their times are too large for a double. */
  origin: bigint;
  range: Range | null;
  tracks: Track[];
  slices: number;
  instants: number;
  damage: Gap[];
  counters: Counter[];
  hasArrows: boolean;
  sql: boolean;
  sections: string[];
}

function readTrack(value: Json): Track {
  const track = asObject(value, "track");
  return {
    id: asNumber(track["id"], "track.id"),
    file: optionalNumber(track["file"]) ?? 0,
    process: optionalNumber(track["process"]),
    processName: optionalText(track["process_name"]),
    thread: optionalNumber(track["thread"]),
    lane: optionalNumber(track["lane"]),
    name: optionalText(track["name"]) ?? "",
    depth: Math.max(1, optionalNumber(track["depth"]) ?? 1),
    slices: optionalNumber(track["slices"]) ?? 0,
  };
}

function readFile(value: Json, position: number): TraceFile {
  const file = asObject(value, "file");
  const damage = file["damage"];
  return {
    index: optionalNumber(file["index"]) ?? position,
    name: asText(file["name"], "file.name"),
    format: optionalText(file["format"]) ?? "",
    bytes: optionalNumber(file["bytes"]) ?? 0,
    damage: Array.isArray(damage) ? damage.length : Number(optionalNumber(damage) ?? (damage === true ? 1 : 0)),
    moved: optionalNumber(file["moved"]) ?? 0,
  };
}

/** None where the place in the file has no time: it is counted with its file, and has no place on the axis. */
function readGap(value: Json): Gap[] {
  const gap = asObject(value, "damage");
  if (optionalNumber(gap["start"]) === null || optionalNumber(gap["end"]) === null) return [];
  return [
    {
      file: optionalNumber(gap["file"]) ?? 0,
      start: asNumber(gap["start"], "damage.start"),
      end: asNumber(gap["end"], "damage.end"),
      text: optionalText(gap["text"]) ?? "damaged",
    },
  ];
}

function readRange(value: Json | undefined): Range | null {
  if (value === null || value === undefined) return null;
  const range = asObject(value, "range");
  return { start: asNumber(range["start"], "range.start"), end: asNumber(range["end"], "range.end") };
}

function readUnit(value: Json | undefined): Unit {
  return value === "tick" || value === "seq" ? value : "ns";
}

/** An integer that is sent as text, because a double may not hold it. */
function integerText(value: Json | undefined): bigint | null {
  const text = optionalText(value);
  return text !== null && /^-?\d+$/.test(text) ? BigInt(text) : null;
}

export function readTrace(value: Json): Trace {
  const trace = asObject(value, "trace");
  return {
    version: asNumber(trace["version"], "trace.version"),
    edition: asNumber(trace["version"], "trace.version"),
    complete: trace["complete"] === true,
    following: trace["following"] === true,
    progress: optionalNumber(trace["progress"]) ?? 0,
    error: optionalText(trace["error"]),
    files: asList(trace["files"], "trace.files").map(readFile),
    unit: readUnit(trace["unit"]),
    ticksPerSecond: optionalNumber(trace["ticks_per_second"]),
    origin: integerText(trace["origin"]) ?? 0n,
    wallStartNs: integerText(trace["wall_start_ns"]),
    range: readRange(trace["range"]),
    tracks: asList(trace["tracks"], "trace.tracks").map(readTrack),
    slices: optionalNumber(trace["slices"]) ?? 0,
    instants: optionalNumber(trace["instants"]) ?? 0,
    damage: optionalList(trace["damage"]).flatMap((gap) => readGap(gap)),
    hasArrows: trace["has_arrows"] === true,
    counters: optionalList(trace["counters"]).map((item) => {
      const counter = asObject(item, "counter");
      return { id: asNumber(counter["id"], "counter.id"), name: optionalText(counter["name"]) ?? "", track: optionalNumber(counter["track"]) };
    }),
    sql: trace["sql"] === true,
    sections: optionalList(trace["sections"]).map((name) => asText(name, "section")),
  };
}

export interface Hit extends Range {
  track: number;
  depth: number;
  name: number;
}

export interface SearchAnswer {
  query: string;
  total: number;
  truncated: boolean;
  names: { id: number; name: string; count: number }[];
  hits: Hit[];
}

function readHit(value: Json): Hit {
  const hit = asObject(value, "hit");
  return {
    track: asNumber(hit["track"], "hit.track"),
    depth: asNumber(hit["depth"], "hit.depth"),
    start: asNumber(hit["start"], "hit.start"),
    end: asNumber(hit["end"], "hit.end"),
    name: optionalNumber(hit["name"]) ?? 0xffffffff,
  };
}

export function readSearch(value: Json): SearchAnswer {
  const answer = asObject(value, "search");
  return {
    query: optionalText(answer["query"]) ?? "",
    total: asNumber(answer["total"], "search.total"),
    truncated: answer["truncated"] === true,
    names: optionalList(answer["names"]).map((item) => {
      const name = asObject(item, "name");
      return { id: asNumber(name["id"], "name.id"), name: optionalText(name["name"]) ?? "", count: optionalNumber(name["count"]) ?? 0 };
    }),
    hits: asList(answer["hits"], "search.hits").map(readHit),
  };
}

export interface NameRow {
  id: number;
  name: string;
  count: number;
  total: number;
  self: number;
  mean: number;
  min: number;
  max: number;
  p50: number;
  p90: number;
  p99: number;
}

export interface ThreadRow {
  track: number;
  count: number;
  total: number;
  self: number;
}

export interface Selection {
  count: number;
  total: number;
  names: NameRow[];
  threads: ThreadRow[];
  edges: number[];
  counts: number[];
  slowest: Hit[];
  exact: boolean;
}

function field(object: JsonObject, name: string): number {
  return optionalNumber(object[name]) ?? 0;
}

function readNameRow(value: Json): NameRow {
  const row = asObject(value, "selection.names");
  return {
    id: field(row, "id"), name: optionalText(row["name"]) ?? "", count: field(row, "count"), total: field(row, "total"),
    self: field(row, "self"), mean: field(row, "mean"), min: field(row, "min"), max: field(row, "max"),
    p50: field(row, "p50"), p90: field(row, "p90"), p99: field(row, "p99"),
  };
}

export function readSelection(value: Json): Selection {
  const answer = asObject(value, "selection");
  const histogram = asObject(answer["histogram"] ?? {}, "selection.histogram");
  return {
    count: asNumber(answer["count"], "selection.count"),
    total: field(answer, "total"),
    names: asList(answer["names"], "selection.names").map(readNameRow),
    threads: optionalList(answer["threads"]).map((item) => {
      const row = asObject(item, "selection.threads");
      return { track: field(row, "track"), count: field(row, "count"), total: field(row, "total"), self: field(row, "self") };
    }),
    edges: asNumbers(histogram["edges"] ?? [], "histogram.edges"),
    counts: asNumbers(histogram["counts"] ?? [], "histogram.counts"),
    slowest: optionalList(answer["slowest"]).map(readHit),
    exact: answer["exact"] !== false,
  };
}

export interface FlameNode {
  name: string;
  total: number;
  self: number;
  count: number;
  children: FlameNode[];
}

/** Deeper than this, a stack is cut: the picture could not show it, and reading must not recurse without bound. */
const FLAME_DEPTH_MAX = 1000;

export function readFlame(value: Json, depth = 0): FlameNode {
  const node = asObject(value, "flame");
  const children = depth < FLAME_DEPTH_MAX ? optionalList(node["children"]) : [];
  return {
    name: optionalText(node["name"]) ?? "",
    total: field(node, "total"),
    self: field(node, "self"),
    count: field(node, "count"),
    children: children.map((child) => readFlame(child, depth + 1)),
  };
}

export interface Call extends Range {
  name: string;
  self: number | null;
  depth: number;
  track: number;
  flags: string[];
  stack: (Range & { name: string; depth: number })[];
  file: string | null;
  line: number | null;
  attributes: JsonObject | null;
  children: { name: string; count: number; total: number }[];
  arrows: Arrow[];
  /** What the format can explain here; `at` is a number of 64 bits, as a text. */
  explanations: { name: string; title: string; at: string }[];
}

export function readCall(value: Json): Call {
  const call = asObject(value, "slice");
  const attributes = call["attributes"];
  return {
    name: optionalText(call["name"]) ?? "",
    start: asNumber(call["start"], "slice.start"),
    end: asNumber(call["end"], "slice.end"),
    self: optionalNumber(call["self"]),
    depth: field(call, "depth"),
    track: field(call, "track"),
    flags: asTexts(call["flags"] ?? [], "slice.flags"),
    stack: optionalList(call["stack"]).map((item) => {
      const frame = asObject(item, "slice.stack");
      return { name: optionalText(frame["name"]) ?? "", start: field(frame, "start"), end: field(frame, "end"), depth: field(frame, "depth") };
    }),
    file: optionalText(call["file"]),
    line: optionalNumber(call["line"]),
    attributes: attributes !== null && attributes !== undefined ? asObject(attributes, "slice.attributes") : null,
    children: optionalList(call["children"]).map((item) => {
      const child = asObject(item, "slice.children");
      return { name: optionalText(child["name"]) ?? "", count: field(child, "count"), total: field(child, "total") };
    }),
    arrows: readArrows(call["arrows"]),
    explanations: optionalList(call["explanations"]).map((item) => {
      const one = asObject(item, "slice.explanations");
      return { name: asText(one["name"], "explanation.name"), title: asText(one["title"], "explanation.title"), at: asText(one["at"], "explanation.at") };
    }),
  };
}

export interface SqlAnswer {
  columns: { name: string; type: string }[];
  rows: Json[][];
  diagnostics: string[];
  elapsedMs: number | null;
  truncated: boolean;
}

export function readSql(value: Json): SqlAnswer {
  const answer = asObject(value, "sql");
  return {
    columns: asList(answer["columns"], "sql.columns").map((item) => {
      const column = asObject(item, "sql.columns");
      return { name: asText(column["name"], "column.name"), type: optionalText(column["type"]) ?? "" };
    }),
    rows: asList(answer["rows"], "sql.rows").map((row) => asList(row, "sql.rows")),
    diagnostics: optionalList(answer["diagnostics"]).map((item) => optionalText(item) ?? ""),
    elapsedMs: optionalNumber(answer["elapsed_ms"]),
    truncated: answer["truncated"] === true,
  };
}

export interface SqlTable {
  table: string;
  columns: { name: string; type: string }[];
}

export function readTables(value: Json): SqlTable[] {
  return asList(value, "tables").map((item) => {
    const table = asObject(item, "table");
    return {
      table: asText(table["table"], "table.table"),
      columns: optionalList(table["columns"]).map((entry) => {
        const column = asObject(entry, "column");
        return { name: asText(column["name"], "column.name"), type: optionalText(column["type"]) ?? "" };
      }),
    };
  });
}

function readArrowEnd(value: Json | undefined): ArrowEnd {
  const end = asObject(value ?? null, "arrow");
  return { track: field(end, "track"), depth: field(end, "depth"), start: field(end, "start"), end: field(end, "end"), at: field(end, "at") };
}

export function readArrows(value: Json | undefined): Arrow[] {
  return optionalList(value).map((item) => {
    const arrow = asObject(item, "arrow");
    return { from: readArrowEnd(arrow["from"]), to: readArrowEnd(arrow["to"]) };
  });
}

export interface CounterSeries {
  times: number[];
  lows: number[];
  highs: number[];
}

/** Points of a counter: between two points the value is the first one's. */
export function readCounter(value: Json): CounterSeries {
  const series = asObject(value, "counter");
  const times = asNumbers(series["t"], "counter.t");
  const highs = asNumbers(series["max"], "counter.max");
  const lows = asNumbers(series["min"] ?? series["max"], "counter.min");
  return { times, lows, highs };
}
