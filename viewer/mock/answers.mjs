// The mock server's answers, computed from the slices themselves: slow and obvious.

import { lowerBound } from "./trace.mjs";

const ITEM_BYTES = 48;
const NO_NAME = 0xffffffff;

export function tiles(trace, start, end, px, trackIds, version) {
  const items = [];
  const perPx = (end - start) / px;
  for (const id of [...trackIds].sort((a, b) => a - b)) {
    const track = trace.tracks[id];
    if (track) track.rows.forEach((row, depth) => rowItems(items, trace, track, depth, row, start, end, perPx));
  }
  const buffer = new ArrayBuffer(16 + items.length * ITEM_BYTES);
  const view = new DataView(buffer);
  [0x31545641, items.length, version, 0].forEach((word, i) => view.setUint32(i * 4, word, true));
  items.forEach((item, i) => writeItem(view, 16 + i * ITEM_BYTES, item));
  return Buffer.from(buffer);
}

/** Neighbors are one item while each of them, each gap, and all together are below a pixel. */
function rowItems(items, trace, track, depth, row, start, end, perPx) {
  let open = null;
  const flags = trace.kind === "instants" ? 8 : 0;
  for (let i = lowerBound(row.ends, start); i < row.starts.length && row.starts[i] <= end; i++) {
    const [from, to, name] = [row.starts[i], row.ends[i], row.names[i]];
    if (open && to - open.start < perPx && from - open.end < perPx) {
      open.end = to;
      open.busy += to - from;
      open.count++;
      if (to - from > open.longest) [open.longest, open.longestName] = [to - from, name];
    } else {
      open = { track: track.id, depth, start: from, end: to, busy: to - from, count: 1, name, longest: to - from, longestName: name, flags };
      items.push(open);
    }
  }
}

function writeItem(view, at, item) {
  view.setUint32(at, item.track, true);
  view.setUint32(at + 4, item.depth, true);
  view.setFloat64(at + 8, item.start, true);
  view.setFloat64(at + 16, item.end, true);
  view.setFloat64(at + 24, item.busy, true);
  view.setUint32(at + 32, item.count, true);
  view.setUint32(at + 36, item.count > 1 ? NO_NAME : item.name, true);
  view.setUint32(at + 40, item.flags, true);
  view.setUint32(at + 44, item.longestName, true);
}

/** Calls `each` for every slice that begins in `[start, end)`. */
function eachSlice(trace, start, end, each) {
  for (const track of trace.tracks) {
    track.rows.forEach((row, depth) => {
      for (let i = lowerBound(row.starts, start); i < row.starts.length && row.starts[i] < end; i++) each(track, depth, row, i);
    });
  }
}

/** Time of a slice's direct callees. */
function within(track, depth, from, to) {
  const row = track.rows[depth + 1];
  let sum = 0;
  if (!row) return sum;
  for (let i = lowerBound(row.starts, from); i < row.starts.length && row.starts[i] < to; i++) sum += row.ends[i] - row.starts[i];
  return sum;
}

export function selection(trace, start, end) {
  const byName = new Map();
  const byTrack = new Map();
  const slowest = [];
  let [count, total] = [0, 0];
  eachSlice(trace, start, end, (track, depth, row, i) => {
    const [from, to, name] = [row.starts[i], row.ends[i], row.names[i]];
    const self = to - from - within(track, depth, from, to);
    count++;
    total += to - from;
    const entry = byName.get(name) ?? byName.set(name, { durations: [], self: 0 }).get(name);
    entry.durations.push(to - from);
    entry.self += self;
    const thread = byTrack.get(track.id) ?? byTrack.set(track.id, { track: track.id, count: 0, total: 0, self: 0 }).get(track.id);
    thread.count++;
    thread.total += to - from;
    thread.self += self;
    slowest.push({ track: track.id, depth, start: from, end: to, name });
  });
  slowest.sort((a, b) => b.end - b.start - (a.end - a.start));
  const durations = [...byName.values()].flatMap((entry) => entry.durations);
  return { count, total, names: [...byName].map(([id, entry]) => nameRow(trace, id, entry)), threads: [...byTrack.values()], histogram: histogram(durations), slowest: slowest.slice(0, 100), exact: true };
}

function nameRow(trace, id, entry) {
  const sorted = entry.durations.sort((a, b) => a - b);
  const total = sorted.reduce((sum, value) => sum + value, 0);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { id, name: trace.names[id], count: sorted.length, total, self: entry.self, mean: total / sorted.length, min: sorted[0], max: sorted.at(-1), p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

function histogram(durations) {
  const counts = new Array(34).fill(0);
  for (const duration of durations) counts[Math.min(33, Math.max(0, Math.floor(Math.log2(Math.max(duration, 1)))))]++;
  return { edges: counts.map((_count, i) => 2 ** i), counts };
}

export function slice(trace, trackId, depth, start) {
  const track = trace.tracks[trackId];
  const row = track?.rows[depth];
  const i = row ? row.starts.indexOf(start) : -1;
  if (i < 0) return null;
  const [from, to] = [row.starts[i], row.ends[i]];
  const stack = [];
  for (let d = 0; d <= depth; d++) {
    const above = track.rows[d];
    const j = lowerBound(above.ends, from + 1);
    if (above.starts[j] <= from) stack.push({ name: trace.names[above.names[j]], start: above.starts[j], end: above.ends[j], depth: d });
  }
  const below = track.rows[depth + 1];
  const children = new Map();
  for (let j = below ? lowerBound(below.starts, from) : 0; below && j < below.starts.length && below.starts[j] < to; j++) {
    const name = trace.names[below.names[j]];
    const child = children.get(name) ?? children.set(name, { name, count: 0, total: 0 }).get(name);
    child.count++;
    child.total += below.ends[j] - below.starts[j];
  }
  return {
    name: trace.names[row.names[i]], start: from, end: to, self: to - from - within(track, depth, from, to), depth, track: trackId,
    flags: trace.kind === "instants" ? ["instant"] : [], stack, file: "src/server.rs", line: 10 + row.names[i], attributes: { request: i, path: "/index.html" },
    children: [...children.values()].sort((a, b) => b.total - a.total),
  };
}

export function search(trace, q, limit) {
  const expression = /^\/(.+)\/$/.exec(q);
  const matches = expression ? (name) => new RegExp(expression[1], "i").test(name) : (name) => name.toLowerCase().includes(q.toLowerCase());
  const found = new Set(trace.names.flatMap((name, id) => (matches(name) ? [id] : [])));
  const counts = new Map();
  const hits = [];
  eachSlice(trace, -Infinity, Infinity, (track, depth, row, i) => {
    const name = row.names[i];
    if (!found.has(name)) return;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    hits.push({ track: track.id, depth, start: row.starts[i], end: row.ends[i], name });
  });
  hits.sort((a, b) => a.start - b.start);
  return { query: q, total: hits.length, names: [...counts].map(([id, count]) => ({ id, name: trace.names[id], count })), hits: hits.slice(0, limit), truncated: hits.length > limit };
}

export function flame(trace, start, end, merge) {
  const root = { name: "all", total: 0, self: 0, count: 0, children: new Map() };
  for (const track of trace.tracks) addRow(root, trace, track, 0, start, end);
  return { unit: "ns", root: plainNode(root, merge) };
}

function addRow(parent, trace, track, depth, start, end) {
  const row = track.rows[depth];
  if (!row) return;
  for (let i = lowerBound(row.starts, start); i < row.starts.length && row.starts[i] < end; i++) {
    const name = trace.names[row.names[i]];
    const node = parent.children.get(name) ?? parent.children.set(name, { name, total: 0, self: 0, count: 0, children: new Map() }).get(name);
    const span = row.ends[i] - row.starts[i];
    node.total += span;
    node.self += span - within(track, depth, row.starts[i], row.ends[i]);
    node.count++;
    if (depth === 0) {
      parent.total += span;
      parent.count++;
    }
    addRow(node, trace, track, depth + 1, row.starts[i], row.ends[i]);
  }
}

function plainNode(node, merge) {
  const children = [...node.children.values()].map((child) => plainNode(child, merge));
  if (merge === "heavy") children.sort((a, b) => b.total - a.total);
  return { name: node.name, total: node.total, self: node.self, count: node.count, children };
}

export function counter(start, end, px) {
  const t = [];
  const max = [];
  for (let i = 0; i < Math.min(px, 800); i++) {
    t.push(start + ((end - start) * i) / 800);
    max.push(Math.round(500 + 400 * Math.sin(t[i] / 2e8) + 60 * Math.sin(t[i] / 7e6)));
  }
  return { t, min: max, max };
}

export const TABLES = [
  { table: "spans", columns: [["seq", "Int64"], ["track", "UInt32"], ["thread", "Int64"], ["depth", "Int32"], ["name", "Utf8"], ["start", "Int64"], ["duration", "Int64"], ["self", "Int64"]].map(([name, type]) => ({ name, type })) },
  { table: "events", columns: [["seq", "Int64"], ["offset", "Int64"], ["kind", "Utf8"], ["name", "Utf8"]].map(([name, type]) => ({ name, type })) },
];

/** Two statements are understood: grouped by name, and rows of the table `spans`. */
export function sql(trace, text) {
  if (/nowhere/i.test(text)) return null;
  const { range } = trace;
  if (/group\s+by\s+name/i.test(text)) {
    const rows = selection(trace, range.start, range.end).names.sort((a, b) => b.total - a.total).map((row) => [row.name, row.count, row.total]);
    return { columns: [{ name: "name", type: "Utf8" }, { name: "calls", type: "Int64" }, { name: "total", type: "Int64" }], rows, diagnostics: [], elapsed_ms: 12, truncated: false };
  }
  const rows = selection(trace, range.start, range.end).slowest.map((hit) => [hit.track, hit.depth, trace.names[hit.name], hit.start, hit.end - hit.start]);
  return { columns: [["track", "UInt32"], ["depth", "Int32"], ["name", "Utf8"], ["start", "Int64"], ["duration", "Int64"]].map(([name, type]) => ({ name, type })), rows, diagnostics: [], elapsed_ms: 9, truncated: false };
}

export function section(trace) {
  const { range } = trace;
  const at = (share) => range.start + (range.end - range.start) * share;
  return {
    title: "Memory",
    blocks: [
      { kind: "text", text: "Accesses by region over time, and the miss ratio for caches of each size." },
      { kind: "heat", title: "Accesses by region", x_label: "time", y_label: "region", columns: 64, rows: 6, cells: Array.from({ length: 384 }, (_cell, i) => Math.round(500 * (1 + Math.sin(i / 5) * Math.cos(i / 64)))), row_names: ["heap: Vec<Particle>", "heap: HashMap", "stack", "data: TABLE", "code", "other"] },
      { kind: "curve", title: "Miss ratio", x: Array.from({ length: 20 }, (_x, i) => 1024 * 2 ** i), series: [{ name: "LRU", y: Array.from({ length: 20 }, (_y, i) => 0.6 / (1 + i * i * 0.15)) }, { name: "OPT", y: Array.from({ length: 20 }, (_y, i) => 0.4 / (1 + i * i * 0.2)) }], log_x: true, marks: [{ x: 32768, label: "L1d 32 KiB" }, { x: 1048576, label: "L2 1 MiB" }] },
      { kind: "table", title: "Types", columns: [{ name: "Type", align: "left" }, { name: "Reads", align: "right" }, { name: "Misses", align: "right" }], rows: [["Particle", 812345, 20411], ["Vec3", 412000, 1022], ["Node<T>", 90210, 44012]], links: [{ start: at(0.2), end: at(0.25), track: 1 }, null, { start: at(0.6), end: at(0.7), track: 2 }] },
      { kind: "lanes", title: "CPUs", lanes: [{ name: "cpu 0", items: [{ start: at(0.1), end: at(0.4), label: "running" }, { start: at(0.5), end: at(0.9), label: "idle" }] }, { name: "cpu 1", items: [{ start: at(0.2), end: at(0.8), label: "running" }] }] },
      { kind: "source", title: "src/particles.c", lines: [{ number: 41, text: "for (int i = 0; i < n; i++) {", value: "" }, { number: 42, text: "    p[i].x += p[i].vx * dt;", value: "812,345" }, { number: 43, text: "}", value: "" }] },
    ],
  };
}
