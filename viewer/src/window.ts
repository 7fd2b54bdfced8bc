// Arithmetic on the visible window of time.

import type { Range } from "./model";

/** The finest window: this many units are as wide as the screen. */
const SPAN_MIN = 10;
/** The widest window, as a multiple of the trace's range. */
const SPAN_MAX = 1.25;
/** How much of the window may lie outside of the trace. */
const OUTSIDE_MAX = 0.5;

export function spanOf(range: Range): number {
  return range.end - range.start;
}

/** A range with a span above zero: a trace may hold one instant only. */
export function nonEmpty(range: Range): Range {
  return spanOf(range) >= 1 ? range : { start: range.start - 0.5, end: range.start + 0.5 };
}

/** Moves and resizes a window so that it stays near the trace. */
export function clamp(view: Range, range: Range): Range {
  const full = spanOf(nonEmpty(range));
  const most = full * SPAN_MAX;
  const span = Math.min(Math.max(spanOf(view), Math.min(SPAN_MIN, most)), most);
  const middle = (view.start + view.end) / 2;
  let start = spanOf(view) === span ? view.start : middle - span / 2;
  start = Math.min(Math.max(start, range.start - span * OUTSIDE_MAX), range.end - span * (1 - OUTSIDE_MAX));
  return spanOf(view) === span && start === view.start ? view : { start, end: start + span };
}

/** Changes the span by `factor`; the time at `anchor` (0 left, 1 right) keeps its place on the screen. */
export function zoom(view: Range, range: Range, factor: number, anchor = 0.5): Range {
  const full = spanOf(nonEmpty(range));
  const most = full * SPAN_MAX;
  const span = Math.min(Math.max(spanOf(view) * factor, Math.min(SPAN_MIN, most)), most);
  const at = view.start + spanOf(view) * anchor;
  const start = at - span * anchor;
  return clamp({ start, end: start + span }, range);
}

/** Moves the window by a share of its span. */
export function pan(view: Range, range: Range, share: number): Range {
  const by = spanOf(view) * share;
  return clamp({ start: view.start + by, end: view.end + by }, range);
}

/** A window that shows `target` with some room at both sides. */
export function around(target: Range, range: Range, room = 0.35): Range {
  const span = Math.max(spanOf(target), SPAN_MIN / (1 + 2 * room));
  const middle = (target.start + target.end) / 2;
  const half = span * (0.5 + room);
  return clamp({ start: middle - half, end: middle + half }, range);
}

export function overlaps(a: Range, b: Range): boolean {
  return a.start < b.end && b.start < a.end;
}

export function contains(outer: Range, inner: Range): boolean {
  return outer.start <= inner.start && inner.end <= outer.end;
}

/** The parts of `range` that `cover` leaves open. */
export function without(range: Range, cover: Range): Range[] {
  if (!overlaps(range, cover)) return [range];
  const parts: Range[] = [];
  if (range.start < cover.start) parts.push({ start: range.start, end: cover.start });
  if (cover.end < range.end) parts.push({ start: cover.end, end: range.end });
  return parts;
}
