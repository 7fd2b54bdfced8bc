// The timeline's elements: minimap, axis, the labels of rows, the canvases, the tooltip.

import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount, formatDuration, formatTime, formatWall, formatPercent } from "../format";
import { installHook } from "../hook";
import type { Gap, Trace } from "../model";
import type { Names } from "../names";
import type { Drawn } from "../render/scene";
import { baseName, type Line } from "../rows";
import { clockOf, type Controller } from "../state/controller";
import { useStore } from "../state/store";
import { FLAG_BEFORE, FLAG_DEDUCED, FLAG_INSTANT, FLAG_OPEN } from "../tiles";
import { spanOf } from "../window";
import { listenToKeys } from "./App";
import { connectMinimap } from "./minimap";
import { NoteFlags } from "./Notes";
import { Pointer } from "./pointer";
import { TimelineView } from "./TimelineView";

interface Tip {
  x: number;
  y: number;
  lines: string[];
}

export function Timeline({ controller, names }: { controller: Controller; names: Names }) {
  const scroll = useRef<HTMLDivElement>(null);
  const sheet = useRef<HTMLDivElement>(null);
  const stage = useRef<HTMLDivElement>(null);
  const rects = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const axis = useRef<HTMLCanvasElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const [lines, setLines] = useState<Line[]>([]);
  const [tip, setTip] = useState<Tip | null>(null);
  useEffect(() => {
    if (!scroll.current || !sheet.current || !stage.current || !rects.current || !overlay.current || !axis.current || !minimap.current) return undefined;
    const parts = { scroll: scroll.current, sheet: sheet.current, stage: stage.current, rects: rects.current, overlay: overlay.current, axis: axis.current, minimap: minimap.current };
    const view = new TimelineView(parts, controller, names);
    view.onLines = setLines;
    connect(view, controller, names, parts, setTip);
    installHook(controller.store, view, (id) => names.raw(id));
    return listenToKeys(controller, () => view.pointerShare());
  }, [controller, names]);
  return (
    <main class="timeline">
      <div class="strip minimap">
        <Corner controller={controller} />
        <canvas ref={minimap} aria-label="Overview of the complete trace" role="img" />
      </div>
      <div class="strip axis">
        <div class="corner"><button type="button" class="plain" onClick={() => controller.toggleAll()}>Open or close all rows</button></div>
        <div class="axis-box">
          <canvas ref={axis} aria-label="Time axis" role="img" />
          <NoteFlags controller={controller} />
        </div>
      </div>
      <div class="scroll" ref={scroll} tabIndex={0} role="application" aria-label="Timeline" aria-describedby="timeline-help">
        <div class="sheet" ref={sheet}>
          <Gutter lines={lines} controller={controller} />
          <div class="stage" ref={stage}>
            <canvas ref={rects} aria-hidden="true" />
            <canvas ref={overlay} aria-hidden="true" />
          </div>
        </div>
        <Emptiness controller={controller} />
      </div>
      <span id="timeline-help" class="visually-hidden">Use w and s to zoom, a and d to move, f to fit, slash to search, question mark for all keys.</span>
      {tip && <Tooltip tip={tip} />}
    </main>
  );
}

type Elements = { scroll: HTMLElement; stage: HTMLElement; axis: HTMLCanvasElement; minimap: HTMLCanvasElement };

function connect(view: TimelineView, controller: Controller, names: Names, parts: Elements, setTip: (tip: Tip | null) => void): void {
  const { scroll, stage, axis } = parts;
  controller.screen = {
    scrollTo: (track, depth) => view.scrollTo(track, depth),
    scrollBy: (pixels) => scroll.scrollBy(0, pixels),
    pointerTime: () => view.pointerTime(),
    neighbor: (slice, step) => view.neighbor(slice, step),
    related: (slice, step) => view.related(slice, step),
    focusSearch: () => document.querySelector<HTMLInputElement>("#search")?.select(),
    savePicture: () => view.still().toBlob((picture) => picture && save(picture, pictureName(controller))),
  };
  const box = (): { left: number; width: number } => stage.getBoundingClientRect();
  const inside = (x: number, y: number): [number, number] => [x - stage.getBoundingClientRect().left, y - stage.getBoundingClientRect().top];
  const surface = { box, left: () => { view.hover(null, 0); setTip(null); }, scrollBy: (pixels: number) => scroll.scrollBy(0, pixels), isScrollable: () => scroll.scrollHeight > scroll.clientHeight + 1, fileAt: (y: number) => view.fileAt(inside(0, y)[1]) };
  new Pointer({
    ...surface,
    element: stage,
    marksAlways: false,
    clicked: (x, y) => clicked(view.hit(...inside(x, y)), controller),
    moved: (x, y) => {
      const [left, top] = inside(x, y);
      const item = view.hover(left, top);
      const state = controller.store.get();
      const gap = item ? null : gapAt(state.trace, state.view.start + (spanOf(state.view) * left) / Math.max(view.width(), 1));
      const lines = item ? describe(item, names, controller) : gap ? ["Damage or loss", gap.text.slice(0, 300)] : null;
      setTip(lines && { x, y, lines });
    },
  }, controller);
  new Pointer({ ...surface, element: axis, marksAlways: true, isScrollable: () => false, fileAt: () => null, clicked: () => undefined, moved: (x) => { view.hover(inside(x, 0)[0], -1); } }, controller);
  connectMinimap(parts.minimap, controller);
}

function pictureName(controller: Controller): string {
  const name = controller.store.get().trace?.files[0]?.name ?? "trace";
  return `${baseName(name).split(".")[0] ?? "trace"}-window.png`;
}

/** Lets the browser store a file. */
function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function gapAt(trace: Trace | null, time: number): Gap | null {
  return trace?.damage.find((gap) => gap.start <= time && time <= gap.end) ?? null;
}

function clicked(item: Drawn | null, controller: Controller): void {
  if (item === null) {
    controller.select(null);
    return;
  }
  const { picture, index, line } = item;
  const range = { start: picture.start(index), end: picture.end(index) };
  if (picture.isAggregate(index)) {
    controller.store.set({ message: `Opened an aggregate of ${formatCount(picture.slices(index))}` });
    controller.goTo(range);
  } else controller.select({ track: line.track.id, depth: picture.depth(index), ...range });
}

/** The lines of the tooltip. */
function describe(item: Drawn, names: Names, controller: Controller): string[] {
  const { picture, index, line } = item;
  const clock = clockOf(controller.store.get().trace);
  const span = picture.end(index) - picture.start(index);
  const flags = picture.flags(index);
  const at = `at ${formatTime(picture.start(index), Math.max(span / 100, 1), clock)}`;
  if (picture.isAggregate(index)) {
    const noun = (flags & FLAG_INSTANT) !== 0 ? "instants" : "slices";
    const busy = (flags & FLAG_INSTANT) !== 0 || picture.busy(index) <= 0 ? [] : [`${formatDuration(picture.busy(index), clock)} busy of ${formatDuration(span, clock)} (${formatPercent(picture.busy(index) / Math.max(span, 1e-9))})`];
    const longest = names.shown(picture.longestName(index));
    return [`${formatCount(picture.slices(index))} ${noun}`, ...busy, ...(longest === "" ? [] : [`longest: ${longest}`]), `${line.label}, depth ${picture.depth(index)}`];
  }
  const notes = [
    (flags & FLAG_OPEN) !== 0 ? "still open at the end of the trace" : null,
    (flags & FLAG_DEDUCED) !== 0 ? "its end is deduced" : null,
    (flags & FLAG_BEFORE) !== 0 ? "began before what was read" : null,
  ].filter((text) => text !== null);
  const wall = formatWall(picture.start(index), clock);
  const length = (flags & FLAG_INSTANT) !== 0 ? "instant" : formatDuration(span, clock);
  return [names.shown(picture.name(index)), `${length} ${at}`, ...(wall === null ? [] : [wall]), `${line.label}, depth ${picture.depth(index)}`, ...notes];
}

function Tooltip({ tip }: { tip: Tip }) {
  const right = tip.x > window.innerWidth - 380;
  const above = tip.y > window.innerHeight - 160;
  const style = { [right ? "right" : "left"]: `${right ? window.innerWidth - tip.x + 14 : tip.x + 14}px`, [above ? "bottom" : "top"]: `${above ? window.innerHeight - tip.y + 14 : tip.y + 14}px` };
  return (
    <div class="tooltip" style={style} aria-hidden="true">
      {tip.lines.map((line, i) => <bdi key={i} class={i === 0 ? "tip-name" : ""}>{line}</bdi>)}
    </div>
  );
}

function Corner({ controller }: { controller: Controller }) {
  const trace = useStore(controller.store, (state) => state.trace);
  const view = useStore(controller.store, (state) => state.view);
  const clock = clockOf(trace);
  if (trace === null || trace.range === null) return <div class="corner" />;
  const step = Math.max(spanOf(view) / 1000, 1);
  return (
    <div class="corner" aria-label="Visible range">
      <span class="corner-span">{clock.unit === "seq" ? `${formatCount(spanOf(view))} records` : formatDuration(spanOf(view), clock)}</span>
      <span class="faint">from {formatTime(view.start, step, clock)}</span>
    </div>
  );
}

function Gutter({ lines, controller }: { lines: Line[]; controller: Controller }) {
  return (
    <div class="gutter">
      {lines.map((line) => {
        const style = { top: `${line.y}px`, height: `${line.height}px` };
        if (line.kind === "counter") return <div key={line.key} class="label counter" style={style}><bdi>{line.label}</bdi></div>;
        return (
          <button
            type="button" key={line.key} class={`label ${line.kind}`} style={style} aria-expanded={line.open}
            onClick={() => controller.toggle(line.key)} title={`${line.label}: ${line.title}`}
          >
            <span class="arrow" aria-hidden="true">{line.open ? "▾" : "▸"}</span>
            <bdi class="label-name">{line.label}</bdi>
            <span class="label-detail">{line.detail}</span>
          </button>
        );
      })}
    </div>
  );
}

function Emptiness({ controller }: { controller: Controller }) {
  const trace = useStore(controller.store, (state) => state.trace);
  const error = useStore(controller.store, (state) => state.error);
  if (trace === null) return error === null ? <p class="empty">Opening the trace…</p> : <p class="empty">There is nothing to show.</p>;
  if (trace.tracks.length > 0) return null;
  if (!trace.complete) return <p class="empty">Reading the trace. The first rows appear as soon as they are known.</p>;
  return <p class="empty">This trace holds no slices and no instants, so there is no timeline. The pages in the panel below and <code>anytrace info</code> show what it has.</p>;
}
