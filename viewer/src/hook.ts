// `window.__anytrace`: what the page shows, for tests and for people with a console.

import type { TimelineView } from "./ui/TimelineView";
import type { Store } from "./state/store";

export interface ShownItem {
  process: number | null;
  thread: number | null;
  depth: number;
  /** Null for an aggregate. */
  name: string | null;
  start: number;
  end: number;
  count: number;
}

export interface PageState {
  range: { start: number; end: number } | null;
  view: { start: number; end: number };
  /** Rows (track and depth) that are open. */
  rows: number;
  /** Items of the last frame. */
  drawn: number;
  /** Tiles that are asked for and not drawn. */
  pending: number;
  /** Frames painted so far. */
  frames: number;
  /** Milliseconds from navigation to the first paint with rows. */
  firstPaintMs: number | null;
  error: string | null;
  painter: string;
}

declare global {
  interface Window {
    __anytrace?: { state(): PageState; items(): ShownItem[] };
  }
}

export function installHook(store: Store, timeline: TimelineView, nameOf: (id: number) => string | null): void {
  window.__anytrace = {
    state: () => pageState(store, timeline),
    items: () => shownItems(store, timeline, nameOf),
  };
}

/** From the axis to the trace's own times. */
function ownTimes(store: Store): (range: { start: number; end: number }) => { start: number; end: number } {
  const origin = Number(store.get().trace?.origin ?? 0n);
  return ({ start, end }) => ({ start: start + origin, end: end + origin });
}

function pageState(store: Store, timeline: TimelineView): PageState {
  const { trace, view, error } = store.get();
  const own = ownTimes(store);
  return {
    range: trace?.range ? own(trace.range) : null,
    view: own(view),
    rows: timeline.layout.rows,
    drawn: timeline.scene.drawn,
    pending: trace === null && error === null ? 1 : timeline.pending(),
    frames: timeline.frames,
    firstPaintMs: timeline.firstPaintMs,
    error,
    painter: timeline.painterKind,
  };
}

function shownItems(store: Store, timeline: TimelineView, nameOf: (id: number) => string | null): ShownItem[] {
  const items: ShownItem[] = [];
  const own = ownTimes(store);
  for (let n = 0; n < timeline.scene.drawn; n++) {
    const { picture, index, line } = timeline.scene.at(n);
    items.push({
      process: line.track.process,
      thread: line.track.thread,
      depth: picture.depth(index),
      name: picture.isAggregate(index) ? null : nameOf(picture.name(index)),
      ...own({ start: picture.start(index), end: picture.end(index) }),
      count: picture.slices(index),
    });
  }
  return items;
}
