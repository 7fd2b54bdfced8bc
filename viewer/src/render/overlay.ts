// What lies over the rectangles: names, hatched gaps, the mark, the selection, notes.

import { GROUNDS, type Theme } from "../colors";
import { formatCount, formatDuration, type Clock } from "../format";
import type { Gap, Range } from "../model";
import type { Names } from "../names";
import { depthY, DEPTH_HEIGHT } from "../rows";
import { FLAG_BEFORE, FLAG_INSTANT, FLAG_OPEN } from "../tiles";
import type { SelectedSlice } from "../state/store";
import type { Note } from "../url";
import { spanOf } from "../window";
import type { Frame, Scene } from "./scene";

const FONT_PX = 11;
const NAME_WIDTH_MIN = 26;
const COUNT_WIDTH_MIN = 36;
const LABELS_MAX = 4000;
const WIDTHS_MAX = 20_000;

export interface Accents {
  accent: string;
  mark: string;
  hatch: string;
  ink: string;
}

export const ACCENTS: Record<Theme, Accents> = {
  light: { accent: "#0b5cad", mark: "rgba(11,92,173,0.12)", hatch: "rgba(178,34,34,0.55)", ink: "#10151c" },
  dark: { accent: "#7cc0ff", mark: "rgba(124,192,255,0.14)", hatch: "rgba(255,122,105,0.6)", ink: "#e6ebf2" },
};

export class Overlay {
  private readonly widths = new Map<string, number>();
  private hatch: { theme: Theme; pattern: CanvasPattern | null } | null = null;

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly names: Names,
  ) {}

  clear(frame: Frame): void {
    this.context.clearRect(0, 0, frame.width, frame.height);
  }

  /** Names in the slices that have room, numbers in aggregates that do. */
  labels(frame: Frame, scene: Scene): void {
    const { context } = this;
    const { ratio } = frame;
    context.font = `${FONT_PX * ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = GROUNDS[frame.theme].text;
    let labels = 0;
    for (let n = 0; n < scene.drawn && labels < LABELS_MAX; n++) {
      if (scene.widthOf(n) < NAME_WIDTH_MIN * ratio) continue;
      labels++;
      this.label(frame, scene, n);
    }
  }

  private label(frame: Frame, scene: Scene, n: number): void {
    const { ratio } = frame;
    const item = scene.at(n);
    const left = Math.max(item.x, 0);
    const room = Math.min(item.x + item.width, frame.width) - left - 8 * ratio;
    const middle = item.y + item.height / 2 + 0.5 * ratio;
    const flags = item.picture.flags(item.index);
    if (item.picture.isAggregate(item.index)) {
      if (item.width < COUNT_WIDTH_MIN * ratio) return;
      const text = this.fit(`×${formatCount(item.picture.slices(item.index))}`, room / ratio, ratio);
      this.context.fillText(text, left + 4 * ratio, middle);
      return;
    }
    if ((flags & FLAG_INSTANT) !== 0) return;
    const name = this.names.shown(item.picture.name(item.index));
    const prefix = (flags & FLAG_BEFORE) !== 0 ? "‹ " : "";
    const suffix = (flags & FLAG_OPEN) !== 0 ? " ›" : "";
    const text = this.fit(prefix + name + suffix, room / ratio, ratio);
    if (text !== "") this.context.fillText(text, left + 4 * ratio, middle);
  }

  /** As much of a text as fits, with an ellipsis; nothing if not even two characters do. */
  private fit(text: string, room: number, ratio: number): string {
    const width = this.width(text, ratio);
    if (width <= room) return text;
    const kept = Math.floor((text.length * (room - 8)) / width);
    return kept < 3 ? "" : `${text.slice(0, kept)}…`;
  }

  private width(text: string, ratio: number): number {
    const known = this.widths.get(text);
    if (known !== undefined) return known;
    if (this.widths.size > WIDTHS_MAX) this.widths.clear();
    const width = this.context.measureText(text).width / ratio;
    this.widths.set(text, width);
    return width;
  }

  /** Gaps are hatched over the rows of their file. */
  gaps(frame: Frame, gaps: readonly Gap[]): void {
    const { context } = this;
    context.fillStyle = this.pattern(frame.theme) ?? ACCENTS[frame.theme].hatch;
    for (const gap of gaps) {
      const [x, width] = place(frame, gap, 4 * frame.ratio);
      if (x > frame.width || x + width < 0) continue;
      for (let i = frame.lines[0]; i < frame.lines[1]; i++) {
        const line = frame.layout.lines[i];
        if (line?.kind !== "track" || line.track.file !== gap.file) continue;
        context.fillRect(x, (line.y - frame.scrollTop) * frame.ratio, width, line.height * frame.ratio);
      }
    }
  }

  pattern(theme: Theme): CanvasPattern | null {
    if (this.hatch?.theme === theme) return this.hatch.pattern;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = tile.getContext("2d");
    if (pen) {
      pen.strokeStyle = ACCENTS[theme].hatch;
      pen.lineWidth = 1.5;
      pen.beginPath();
      for (const at of [-8, 0, 8]) {
        pen.moveTo(at, 8);
        pen.lineTo(at + 8, 0);
      }
      pen.stroke();
    }
    this.hatch = { theme, pattern: this.context.createPattern(tile, "repeat") };
    return this.hatch.pattern;
  }

  mark(frame: Frame, mark: Range | null): void {
    if (mark === null) return;
    const [x, width] = place(frame, mark, 1);
    const { context } = this;
    context.fillStyle = ACCENTS[frame.theme].mark;
    context.fillRect(x, 0, width, frame.height);
    context.fillStyle = ACCENTS[frame.theme].accent;
    const hair = Math.max(1, Math.round(frame.ratio));
    context.fillRect(Math.round(x), 0, hair, frame.height);
    context.fillRect(Math.round(x + width) - hair, 0, hair, frame.height);
  }

  notes(frame: Frame, notes: readonly Note[]): void {
    const k = frame.width / spanOf(frame.view);
    this.context.fillStyle = ACCENTS[frame.theme].accent;
    for (const note of notes) this.context.fillRect(Math.round((note.at - frame.view.start) * k), 0, Math.max(1, Math.round(frame.ratio)), frame.height);
  }

  /** Draws a line around the selected slice or the hit that was walked to. */
  outline(frame: Frame, slice: SelectedSlice | { track: number; depth: number; start: number; end: number } | null, strong: boolean): void {
    const line = slice && frame.layout.byTrack.get(slice.track);
    if (!slice || !line || slice.depth >= line.depths) return;
    const [x, width] = place(frame, slice, 3 * frame.ratio);
    const left = Math.max(x, -4);
    const right = Math.min(x + width, frame.width + 4);
    if (right < left) return;
    const thick = (strong ? 2 : 1) * frame.ratio;
    const y = (depthY(line, slice.depth) - frame.scrollTop) * frame.ratio;
    this.context.strokeStyle = ACCENTS[frame.theme].ink;
    this.context.lineWidth = thick;
    this.context.strokeRect(left, y, right - left, (DEPTH_HEIGHT - 1) * frame.ratio);
  }

  pointer(frame: Frame, x: number | null): void {
    if (x === null) return;
    this.context.fillStyle = frame.theme === "dark" ? "rgba(255,255,255,0.18)" : "rgba(0,0,0,0.16)";
    this.context.fillRect(Math.round(x * frame.ratio), 0, Math.max(1, Math.round(frame.ratio)), frame.height);
  }
}

/** Left edge and width of a range in device pixels, at least `least` wide. */
export function place(frame: Pick<Frame, "view" | "width">, range: Range, least: number): [number, number] {
  const k = frame.width / spanOf(frame.view);
  const x = (range.start - frame.view.start) * k;
  return [x, Math.max((range.end - range.start) * k, least)];
}

/** The words of a mark's length. */
export function markText(mark: Range, clock: Clock): string {
  return formatDuration(spanOf(mark), clock);
}
