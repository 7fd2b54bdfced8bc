// Counters: the lines of values that change over time. Each visible one is asked for at the window's resolution.

import { getCounter } from "../api";
import { formatShortCount, type Clock } from "../format";
import type { CounterSeries, Range, Trace } from "../model";
import { GROUNDS } from "../colors";
import { ACCENTS } from "../render/overlay";
import type { CounterLine } from "../rows";
import type { Frame } from "../render/scene";
import { spanOf } from "../window";

interface Kept {
  view: Range;
  version: number;
  series: CounterSeries | null;
  busy: boolean;
}

/** How long the window must stay before its counters are asked for. */
const SETTLE_MS = 60;

export class Counters {
  private readonly kept = new Map<number, Kept>();
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly arrived: () => void) {}

  draw(context: CanvasRenderingContext2D | null, frame: Frame, trace: Trace, _clock: Clock): void {
    if (context === null || trace.counters.length === 0) return;
    const missing: number[] = [];
    for (let i = frame.lines[0]; i < frame.lines[1]; i++) {
      const line = frame.layout.lines[i];
      if (line?.kind !== "counter") continue;
      const kept = this.kept.get(line.counter.id);
      if (!kept || kept.view !== frame.view || kept.version !== trace.version) missing.push(line.counter.id);
      if (kept?.series) drawSeries(context, frame, line, kept.series);
    }
    if (missing.length > 0) this.askLater(missing, frame.view, trace.version, frame.width);
  }

  private askLater(ids: number[], view: Range, version: number, px: number): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      for (const id of ids) void this.ask(id, view, version, px);
    }, SETTLE_MS);
  }

  private async ask(id: number, view: Range, version: number, px: number): Promise<void> {
    const before = this.kept.get(id);
    if (before?.busy) return;
    this.kept.set(id, { view, version, series: before?.series ?? null, busy: true });
    const series = await getCounter(id, view, px).catch(() => before?.series ?? null);
    this.kept.set(id, { view, version, series, busy: false });
    this.arrived();
  }
}

function drawSeries(context: CanvasRenderingContext2D, frame: Frame, line: CounterLine, series: CounterSeries): void {
  const { ratio, view } = frame;
  const low = Math.min(0, ...extremes(series.lows));
  const high = Math.max(...extremes(series.highs), low + 1e-12);
  const k = frame.width / spanOf(view);
  const top = (line.y - frame.scrollTop + 4) * ratio;
  const tall = (line.height - 8) * ratio;
  const y = (value: number): number => top + tall * (1 - (value - low) / (high - low));
  context.beginPath();
  context.moveTo(0, y(low));
  let last = y(low);
  series.times.forEach((time, i) => {
    const x = Math.min(Math.max((time - view.start) * k, 0), frame.width);
    context.lineTo(x, last);
    last = y(series.highs[i] ?? 0);
    context.lineTo(x, last);
  });
  context.lineTo(frame.width, last);
  context.lineTo(frame.width, y(low));
  context.fillStyle = ACCENTS[frame.theme].mark;
  context.fill();
  context.strokeStyle = ACCENTS[frame.theme].accent;
  context.lineWidth = ratio;
  context.stroke();
  context.fillStyle = GROUNDS[frame.theme].faint;
  context.font = `${10 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  context.fillText(formatShortCount(high), 4 * ratio, top + 6 * ratio);
}

/** The least and the largest value: a spread of a long list into arguments would overflow the stack. */
function extremes(values: readonly number[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 0];
}
