// A synthetic trace for the mock server: the same at every start.

/** A small generator of random numbers with a fixed seed (mulberry32). */
export function random(seed) {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const PLAIN_NAMES = [
  "main", "parse_request", "read_body", "decode_json", "lookup_user", "db::query", "db::connect", "cache::get", "cache::put",
  "render_page", "template::expand", "escape_html", "write_response", "compress", "tls::encrypt", "epoll_wait", "alloc", "free",
  "memcpy", "std::collections::HashMap<String, Vec<u8>>::insert", "hash", "Mutex::lock", "Condvar::wait", "gc::sweep", "log::write", "fmt",
];

/** Names that try to be more than text. */
export const HOSTILE_NAMES = [
  "<script>window.hacked=1</script>",
  "<img src=x onerror=window.hacked=1>",
  "\u202egnp.exe\u202c",
  "a\u0000b\u001b[31mred\nline",
  "']\"};window.hacked=1;//",
  "m".repeat(1_000_000),
];

/** Slices of a row, in order of start: columns of numbers. */
class Row {
  constructor() {
    this.starts = [];
    this.ends = [];
    this.names = [];
  }
}

/** Fills a row between two times and, below each slice, the rows under it; `fan` is the usual number of slices. */
function grow(track, rng, depth, start, end, fan, names) {
  const row = (track.rows[depth] ??= new Row());
  const usual = (end - start) / fan;
  let at = start + rng() * usual * 0.3;
  while (end - at >= 20) {
    const stop = Math.min(end, at + Math.max(20, usual * (0.25 + 1.5 * rng() * rng())));
    const [from, to] = [Math.round(at), Math.round(stop)];
    row.starts.push(from);
    row.ends.push(to);
    row.names.push((depth * 3 + Math.floor(rng() * rng() * 9)) % names);
    if (depth + 1 < track.depth && to - from > 60 && rng() < 0.8) grow(track, rng, depth + 1, from, to, track.fan, names);
    at = to + (rng() < 0.25 ? rng() * usual * 1.5 : rng() * usual * 0.08);
  }
}

/** Makes a trace. `kind`: plain, hostile, empty, instants. */
export function makeTrace(kind = "plain", slicesWanted = 300_000) {
  const rng = random(7);
  const names = kind === "hostile" ? [...HOSTILE_NAMES, ...PLAIN_NAMES] : PLAIN_NAMES;
  const length = kind === "instants" ? 200_000 : 4_200_000_000;
  const origin = kind === "instants" ? 0 : 1_000_000_000;
  const tracks = [];
  for (let process = 0; process < (kind === "empty" ? 0 : 3); process++) {
    for (let thread = 0; thread < [5, 3, 2][process]; thread++) {
      const depth = kind === "instants" ? 1 : [6, 5, 3][process];
      const track = {
        id: tracks.length, file: 0, process: 100 + process, process_name: ["server", "worker", "logger"][process], thread: 1000 + tracks.length,
        lane: null, name: thread === 0 ? "main" : `pool-${thread}`, depth, slices: 0, rows: [],
      };
      if (kind === "instants") fillInstants(track, rng, length);
      else {
        track.fan = (slicesWanted / 10 / 40) ** (1 / (depth - 1));
        grow(track, rng, 0, origin, origin + length, 40, names.length);
      }
      for (let d = 0; d < depth; d++) track.rows[d] ??= new Row();
      track.slices = track.rows.reduce((sum, row) => sum + row.starts.length, 0);
      tracks.push(track);
    }
  }
  const slices = tracks.reduce((sum, track) => sum + track.slices, 0);
  return { kind, names, tracks, slices, range: kind === "empty" ? null : { start: origin, end: origin + length } };
}

function fillInstants(track, rng, length) {
  const row = (track.rows[0] = new Row());
  for (let at = rng() * 50; at < length; at += 1 + rng() * 20) {
    row.starts.push(Math.round(at));
    row.ends.push(Math.round(at));
    row.names.push(Math.floor(rng() * 4));
  }
}

/** First index whose value is at least `value`. */
export function lowerBound(values, value) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
