// The two strips over the rows: the minimap of the complete trace and the axis of the visible window.

import { ticksOf, type Ticks } from "../axis";
import { css, GROUNDS, pack, mix, type Theme } from "../colors";
import { formatTime, type Clock } from "../format";
import type { Gap, Range } from "../model";
import type { Note } from "../url";
import { spanOf } from "../window";
import type { Picture } from "../tiles";
import { ACCENTS, markText, place } from "./overlay";
import type { Size } from "./surface";

/** The share of time in which something ran, in each column of the minimap: 0 to 1. */
export function overviewOf(picture: Picture, range: Range, columns: number): Float32Array {
  const sums = new Float64Array(columns);
  const counts = new Float64Array(columns);
  const k = columns / Math.max(spanOf(range), 1);
  for (let i = 0; i < picture.count; i++) {
    if (picture.depth(i) !== 0) continue;
    spread(sums, (picture.start(i) - range.start) * k, (picture.end(i) - range.start) * k, picture.busy(i));
    spread(counts, (picture.start(i) - range.start) * k, (picture.end(i) - range.start) * k, picture.slices(i));
  }
  // A trace of instants has no busy time: their number has to do.
  const isBusy = sums.some((sum) => sum > 0);
  const values = isBusy ? sums : counts.map((count) => Math.log2(1 + count));
  const most = values.reduce((max, value) => Math.max(max, value), 0);
  return Float32Array.from(values, (value) => (most > 0 ? value / most : 0));
}

function spread(into: Float64Array, from: number, to: number, amount: number): void {
  const first = Math.max(0, Math.floor(from));
  const last = Math.min(into.length - 1, Math.floor(to));
  const width = Math.max(to - from, 1e-9);
  for (let column = first; column <= last; column++) {
    const part = Math.min(to, column + 1) - Math.max(from, column);
    into[column] = (into[column] as number) + (first === last ? amount : (amount * Math.max(part, 0)) / width);
  }
}

export interface MinimapInput {
  range: Range;
  view: Range;
  mark: Range | null;
  columns: Float32Array | null;
  gaps: readonly Gap[];
  hits: readonly number[];
  theme: Theme;
  ratio: number;
}

export function drawMinimap(context: CanvasRenderingContext2D, { width, height }: Size, input: MinimapInput): void {
  const { theme, ratio } = input;
  const ground = GROUNDS[theme].background;
  const blue = theme === "dark" ? pack(98, 140, 190) : pack(98, 150, 205);
  context.fillStyle = css(ground);
  context.fillRect(0, 0, width, height);
  if (input.columns) drawColumns(context, width, height, input.columns, css(mix(blue, ground, theme === "dark" ? 0.75 : 0.8)));
  const frame = { view: input.range, width };
  context.fillStyle = ACCENTS[theme].hatch;
  for (const gap of input.gaps) {
    const [x, wide] = place(frame, gap, 2 * ratio);
    context.fillRect(x, 0, wide, 4 * ratio);
  }
  context.fillStyle = theme === "dark" ? "#ffd166" : "#b45309";
  for (const at of input.hits) context.fillRect(place(frame, { start: at, end: at }, 1)[0], height - 4 * ratio, ratio, 4 * ratio);
  if (input.mark) {
    const [x, wide] = place(frame, input.mark, ratio);
    context.fillStyle = ACCENTS[theme].mark;
    context.fillRect(x, 0, wide, height);
  }
  drawWindow(context, width, height, input);
}

function drawColumns(context: CanvasRenderingContext2D, width: number, height: number, columns: Float32Array, color: string): void {
  context.fillStyle = color;
  const wide = width / columns.length;
  for (let i = 0; i < columns.length; i++) {
    const value = columns[i] as number;
    if (value <= 0) continue;
    const tall = Math.max(1, value * (height - 6));
    const x = Math.floor(i * wide);
    context.fillRect(x, height - tall, Math.max(1, Math.ceil((i + 1) * wide) - x), tall);
  }
}

function drawWindow(context: CanvasRenderingContext2D, width: number, height: number, input: MinimapInput): void {
  const [x, wide] = place({ view: input.range, width }, input.view, 3 * input.ratio);
  context.fillStyle = input.theme === "dark" ? "rgba(8,11,16,0.55)" : "rgba(236,240,245,0.72)";
  context.fillRect(0, 0, Math.max(0, x), height);
  context.fillRect(x + wide, 0, Math.max(0, width - x - wide), height);
  context.strokeStyle = ACCENTS[input.theme].accent;
  context.lineWidth = input.ratio;
  context.strokeRect(x + input.ratio / 2, input.ratio / 2, wide - input.ratio, height - input.ratio);
}

export interface AxisInput {
  view: Range;
  mark: Range | null;
  notes: readonly Note[];
  pointer: number | null;
  clock: Clock;
  theme: Theme;
  ratio: number;
}

/** Pixels between two labels. */
const LABEL_SPACING = 130;

export function axisTicks(view: Range, width: number, ratio: number, clock: Clock): Ticks {
  return ticksOf(view, width / ratio, LABEL_SPACING, clock);
}

export function drawAxis(context: CanvasRenderingContext2D, { width, height }: Size, input: AxisInput): void {
  const { ratio, theme, view, clock } = input;
  context.fillStyle = css(GROUNDS[theme].background);
  context.fillRect(0, 0, width, height);
  const ticks = axisTicks(view, width, ratio, clock);
  const k = width / spanOf(view);
  context.font = `${11 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const minor = ticks.step / ticks.parts;
  const first = (ticks.values[0] ?? view.start) - ticks.step;
  context.fillStyle = theme === "dark" ? "#3b4656" : "#c3cad4";
  for (let at = first, n = 0; at <= view.end && n < 2000; at += minor, n++) context.fillRect(Math.round((at - view.start) * k), height - 4 * ratio, ratio, 4 * ratio);
  for (const at of ticks.values) {
    const x = Math.round((at - view.start) * k);
    context.fillStyle = theme === "dark" ? "#5b6779" : "#9aa5b3";
    context.fillRect(x, height - 9 * ratio, ratio, 9 * ratio);
    context.fillStyle = GROUNDS[theme].faint;
    context.fillText(formatTime(at, ticks.step, clock), x + 5 * ratio, height / 2 + ratio);
  }
  if (input.mark) drawMark(context, width, height, input, input.mark);
}

function drawMark(context: CanvasRenderingContext2D, width: number, height: number, input: AxisInput, mark: Range): void {
  const { ratio, theme } = input;
  const [x, wide] = place({ view: input.view, width }, mark, ratio);
  if (x > width || x + wide < 0) return;
  context.fillStyle = ACCENTS[theme].accent;
  context.fillRect(x, height - 3 * ratio, wide, 3 * ratio);
  const text = markText(mark, input.clock);
  const measure = context.measureText(text).width;
  const middle = (Math.max(x, 0) + Math.min(x + wide, width)) / 2;
  const left = Math.min(Math.max(middle - measure / 2, 4 * ratio), width - measure - 4 * ratio);
  context.fillStyle = ACCENTS[theme].accent;
  context.beginPath();
  context.roundRect(left - 6 * ratio, 3 * ratio, measure + 12 * ratio, 17 * ratio, 4 * ratio);
  context.fill();
  context.fillStyle = theme === "dark" ? "#0b0f15" : "#ffffff";
  context.fillText(text, left, 12 * ratio);
}
