// Arrows between slices: those of the selected slice, and all of the window where they are few.

import { getArrows, getArrowsOf } from "../api";
import type { Arrow, Range, Trace } from "../model";
import { ACCENTS } from "../render/overlay";
import type { Frame } from "../render/scene";
import { depthY, DEPTH_HEIGHT } from "../rows";
import { spanOf } from "../window";
import type { SelectedSlice } from "./store";

/** More arrows than this in a window would hide what they join: only those of the selected slice are drawn. */
const SHOWN_MAX = 200;
/** How long the window must stay before its arrows are asked for. */
const SETTLE_MS = 60;
const HEAD = 6;
const WIDTH_MIN = 10;

interface Kept<Key> {
  key: Key;
  version: number;
  arrows: Arrow[];
}

export class Arrows {
  private window: Kept<Range> | null = null;
  private own: Kept<SelectedSlice> | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private asked: { view: Range; slice: SelectedSlice | null; version: number } | null = null;

  constructor(private readonly arrived: () => void) {}

  draw(context: CanvasRenderingContext2D, frame: Frame, trace: Trace, slice: SelectedSlice | null): void {
    if (!trace.hasArrows) return;
    const { asked } = this;
    if (asked?.view !== frame.view || asked.slice !== slice || asked.version !== trace.version) this.askLater(frame.view, slice, trace.version);
    const own = slice !== null && this.own?.key === slice ? this.own.arrows : [];
    for (const arrow of this.window?.arrows ?? []) drawArrow(context, frame, arrow, false);
    for (const arrow of own) drawArrow(context, frame, arrow, true);
  }

  private askLater(view: Range, slice: SelectedSlice | null, version: number): void {
    this.asked = { view, slice, version };
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ask(view, slice, version), SETTLE_MS);
  }

  private async ask(view: Range, slice: SelectedSlice | null, version: number): Promise<void> {
    const nothing = (): Arrow[] => [];
    const own = slice === null || (this.own?.key === slice && this.own.version === version) ? null : getArrowsOf(slice).catch(nothing);
    const window = await getArrows(view, SHOWN_MAX).catch(nothing);
    if (this.asked?.view === view) this.window = { key: view, version, arrows: window };
    if (own !== null && slice !== null) this.own = { key: slice, version, arrows: await own };
    this.arrived();
  }
}

/** Where an end of an arrow is drawn; null where its row is closed or its track unknown. */
function pointOf(frame: Frame, end: Arrow["from"]): [number, number] | null {
  const line = frame.layout.byTrack.get(end.track);
  if (!line || !line.open || end.depth >= line.depths) return null;
  const x = ((end.at - frame.view.start) * frame.width) / spanOf(frame.view);
  return [x, (depthY(line, end.depth) + DEPTH_HEIGHT / 2 - frame.scrollTop) * frame.ratio];
}

function drawArrow(context: CanvasRenderingContext2D, frame: Frame, arrow: Arrow, strong: boolean): void {
  const [from, to] = [pointOf(frame, arrow.from), pointOf(frame, arrow.to)];
  if (from === null || to === null) return;
  const { ratio } = frame;
  // Far outside, curves cost time and show nothing.
  const far = frame.width * 4;
  const [x1, x2] = [Math.max(from[0], -far), Math.min(to[0], frame.width + far)];
  // Between neighboring pixels an arrow would only hide what it joins.
  if (!strong && x2 - x1 < WIDTH_MIN * ratio) return;
  const bend = Math.max(12 * ratio, Math.min(Math.abs(x2 - x1) / 2, 120 * ratio));
  context.beginPath();
  context.moveTo(x1, from[1]);
  context.bezierCurveTo(x1 + bend, from[1], x2 - bend, to[1], x2, to[1]);
  context.strokeStyle = strong ? ACCENTS[frame.theme].ink : ACCENTS[frame.theme].accent;
  context.globalAlpha = strong ? 1 : 0.55;
  context.lineWidth = (strong ? 2 : 1) * ratio;
  context.stroke();
  context.beginPath();
  context.moveTo(x2, to[1]);
  context.lineTo(x2 - HEAD * ratio, to[1] - (HEAD / 2) * ratio);
  context.lineTo(x2 - HEAD * ratio, to[1] + (HEAD / 2) * ratio);
  context.closePath();
  context.fillStyle = context.strokeStyle;
  context.fill();
  context.globalAlpha = 1;
}
