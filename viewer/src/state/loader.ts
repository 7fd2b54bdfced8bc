// Keeps the pictures (answers of `api/tiles`) that the painter draws from, and asks for the one it misses.
//
// At most one request for the visible window is under way. While it is, the window may move on; what arrives is drawn
// all the same, since it is nearer than what was there, and the next request is for the window as it is then. A request
// that takes long and that nobody waits for any more is aborted.

import { getTiles, isAbort } from "../api";
import type { Range } from "../model";
import { contains, overlaps, spanOf } from "../window";
import type { Picture } from "../tiles";

/** What a frame needs. */
export interface Want {
  view: Range;
  /** The trace's range: outside of it there is nothing to ask for. */
  range: Range;
  /** Device pixels. */
  px: number;
  /** Tracks that are visible now. */
  visible: readonly number[];
  /** Tracks to ask for: the visible ones and some around them. */
  tracks: readonly number[];
  /** The trace's version, and whether it will not change any more. */
  version: number;
  complete: boolean;
}

export interface Entry {
  picture: Picture;
  range: Range;
  perPx: number;
  tracks: ReadonlySet<number>;
  version: number;
  /** True if the trace had been read completely when the server answered. */
  used: number;
}

interface Flight {
  range: Range;
  perPx: number;
  tracks: ReadonlySet<number>;
  version: number;
  abort: AbortController;
  timer: ReturnType<typeof setTimeout> | null;
}

const BYTES_MAX = 24 * 1024 * 1024;
const ENTRIES_MAX = 48;
/** How much of the window is asked for at each side beyond it. */
const MARGIN = 0.2;
/** A picture finer than the screen by more than this is replaced: it has items that share a pixel. */
const FINER_MAX = 2;
const ABORT_AFTER_MS = 200;
const RETRY_AFTER_MS = 1000;
export const PX_MAX = 8192;

export class Loader {
  private entries: Entry[] = [];
  private flight: Flight | null = null;
  private wanted: Want | null = null;
  private pinned: Entry | null = null;
  private clock = 0;
  private retryAt = 0;
  private unpainted = 0;

  /** `arrived` is called when something new can be drawn, `failed` with an error that is no abort, or null after one. */
  constructor(
    private readonly arrived: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** Says what the screen shows now, and asks for it if need be. */
  want(want: Want): void {
    this.wanted = want;
    if (this.flight === null) this.next();
    else if (!fits(this.flight, want)) this.abortLater(this.flight);
  }

  /** Pictures to draw a window from, best first. */
  candidates(want: Want): Entry[] {
    const perPx = spanOf(want.view) / want.px;
    const near = this.entries.filter((entry) => overlaps(entry.range, want.view));
    const cost = (entry: Entry): number => {
      const scale = Math.log2(entry.perPx / perPx);
      return (scale < 0 ? -scale * 1.5 : scale) + (entry.version === want.version ? 0 : 0.01);
    };
    near.sort((a, b) => cost(a) - cost(b) || b.used - a.used);
    const best = near.slice(0, 4);
    if (this.pinned && !best.includes(this.pinned)) best.push(this.pinned);
    for (const entry of best.slice(0, 1)) entry.used = ++this.clock;
    return best;
  }

  /** Keeps the picture of the complete trace: there is always something to draw. */
  pin(entry: Omit<Entry, "used">): void {
    this.pinned = { ...entry, used: 0 };
  }

  /** Requests under way or still to be sent, and answers that no frame has drawn. */
  pending(): number {
    const missing = this.wanted !== null && this.find(this.wanted) === null;
    return (this.flight !== null || missing ? 1 : 0) + this.unpainted;
  }

  painted(): void {
    this.unpainted = 0;
  }

  bytes(): number {
    return this.entries.reduce((sum, entry) => sum + entry.picture.bytes, 0);
  }

  private find(want: Want): Entry | null {
    return this.entries.find((entry) => fits(entry, want)) ?? null;
  }

  private next(): void {
    const want = this.wanted;
    if (want === null || want.tracks.length === 0 || performance.now() < this.retryAt) return;
    const entry = this.find(want);
    const isStale = entry !== null && entry.version !== want.version;
    if (entry === null || isStale) void this.fly(want);
  }

  private abortLater(flight: Flight): void {
    flight.timer ??= setTimeout(() => {
      if (this.flight === flight && this.wanted && !fits(flight, this.wanted)) flight.abort.abort();
      flight.timer = null;
    }, ABORT_AFTER_MS);
  }

  private async fly(want: Want): Promise<void> {
    const perPx = spanOf(want.view) / want.px;
    const range = padded(want);
    const px = Math.min(PX_MAX, Math.max(1, Math.round(spanOf(range) / perPx)));
    const flight: Flight = { range, perPx, tracks: new Set(want.tracks), version: want.version, abort: new AbortController(), timer: null };
    this.flight = flight;
    try {
      const picture = await getTiles(range, px, want.tracks, flight.abort.signal);
      this.keep({ picture, range, perPx, tracks: flight.tracks, version: want.version, used: ++this.clock });
      this.unpainted = 1;
      this.failed(null);
    } catch (error) {
      if (!isAbort(error)) {
        this.retryAt = performance.now() + RETRY_AFTER_MS;
        setTimeout(() => this.next(), RETRY_AFTER_MS + 10);
        this.failed(error);
      }
    } finally {
      if (flight.timer !== null) clearTimeout(flight.timer);
      this.flight = null;
    }
    this.next();
    this.arrived();
  }

  private keep(entry: Entry): void {
    // What the new one replaces exactly would only take room.
    this.entries = this.entries.filter((old) => !(old.range.start === entry.range.start && old.range.end === entry.range.end && old.perPx === entry.perPx && isSubset(old.tracks, entry.tracks)));
    this.entries.push(entry);
    this.entries.sort((a, b) => b.used - a.used);
    let bytes = 0;
    this.entries = this.entries.filter((kept, position) => {
      bytes += kept.picture.bytes;
      return position === 0 || (bytes <= BYTES_MAX && position < ENTRIES_MAX);
    });
  }
}

function isSubset(part: ReadonlySet<number>, all: ReadonlySet<number>): boolean {
  for (const item of part) if (!all.has(item)) return false;
  return true;
}

/** The window with a margin, as far as the trace goes. */
function padded(want: Want): Range {
  const margin = spanOf(want.view) * MARGIN;
  const start = Math.max(want.view.start - margin, want.range.start);
  const end = Math.min(want.view.end + margin, want.range.end);
  return start < end ? { start, end } : { start: want.range.start, end: Math.max(want.range.end, want.range.start + 1) };
}

function fits(entry: { range: Range; perPx: number; tracks: ReadonlySet<number> }, want: Want): boolean {
  const perPx = spanOf(want.view) / want.px;
  if (entry.perPx > perPx * 1.001 || entry.perPx * FINER_MAX < perPx) return false;
  const start = Math.max(want.view.start, want.range.start);
  const end = Math.min(want.view.end, want.range.end);
  if (start < end && !contains(entry.range, { start, end })) return false;
  return want.visible.every((track) => entry.tracks.has(track));
}
