// The timeline's canvases: decides what a frame needs, asks the loader for it, paints.

import { errorText, getTiles } from "../api";
import { GROUNDS, css } from "../colors";
import type { Clock } from "../format";
import type { Names } from "../names";
import { cardPainter, PixelPainter, type RectPainter } from "../render/painters";
import { Overlay } from "../render/overlay";
import { Scene, type Drawn, type Frame } from "../render/scene";
import { drawStill } from "../render/still";
import { axisTicks, drawAxis, drawMinimap, overviewOf } from "../render/strips";
import { isSoftware, resize, surfacesOf, type Size, type Surfaces } from "../render/surface";
import { DEPTH_HEIGHT, layOut, depthY, visibleLines, type Layout, type Line } from "../rows";
import { clockOf, type Controller } from "../state/controller";
import { Arrows } from "../state/arrows";
import { Counters } from "../state/counters";
import { Loader, PX_MAX, type Want } from "../state/loader";
import { currentHit, type SelectedSlice, type State } from "../state/store";
import { spanOf } from "../window";

export interface Parts {
  scroll: HTMLElement;
  sheet: HTMLElement;
  stage: HTMLElement;
  rects: HTMLCanvasElement;
  overlay: HTMLCanvasElement;
  axis: HTMLCanvasElement;
  minimap: HTMLCanvasElement;
}

/** Tracks of the minimap: more would make its answer large and its picture no better. */
const OVERVIEW_TRACKS_MAX = 64;
const OVERVIEW_EVERY_MS = 600;
const EMPTY_LAYOUT: Layout = { lines: [], height: 0, rows: 0, byTrack: new Map() };

export class TimelineView {
  readonly scene: Scene;
  readonly loader: Loader;
  layout: Layout = EMPTY_LAYOUT;
  frames = 0;
  firstPaintMs: number | null = null;
  /** Called when other lines are visible. */
  onLines: (lines: Line[], height: number) => void = () => undefined;

  private readonly painter: RectPainter;
  private readonly overlay: Overlay | null;
  /** What lies over the rectangles, and these themselves if there is no graphics card; the axis; the minimap. */
  private readonly surfaces: Surfaces;
  private readonly counters: Counters;
  private readonly arrows: Arrows;
  private frameAsked = 0;
  private shownLines = "";
  private overview: { version: number; columns: Float32Array; at: number } | null = null;
  private overviewBusy = false;
  private pointerX: number | null = null;
  private hovered: Drawn | null = null;
  private namesAsked = -1;

  constructor(
    private readonly parts: Parts,
    private readonly controller: Controller,
    private readonly names: Names,
  ) {
    this.scene = new Scene(names);
    this.loader = new Loader(() => this.paint(), (error) => this.failed(error));
    const card = isSoftware() ? null : cardPainter(parts.rects);
    this.surfaces = surfacesOf([card === null ? parts.rects : parts.overlay, parts.axis, parts.minimap]);
    this.painter = card ?? new PixelPainter(this.surfaces.context);
    this.overlay = this.surfaces.context && new Overlay(this.surfaces.context, names);
    this.counters = new Counters(() => this.invalidate());
    this.arrows = new Arrows(() => this.invalidate());
    controller.store.subscribe((state, before) => this.changed(state, before));
    parts.scroll.addEventListener("scroll", () => this.update(), { passive: true });
    new ResizeObserver(() => this.update()).observe(parts.scroll);
    this.relayout(controller.store.get());
  }

  get painterKind(): string {
    return this.painter.kind;
  }

  /** Answers that are missing on the screen. */
  pending(): number {
    return this.loader.pending() + (this.frameAsked !== 0 ? 1 : 0);
  }

  invalidate(): void {
    if (this.frameAsked === 0) this.frameAsked = requestAnimationFrame(() => this.paint());
  }

  private failed(error: unknown): void {
    const { store } = this.controller;
    const text = error === null ? (store.get().trace?.error ?? null) : errorText(error);
    if (store.get().error !== text) store.set({ error: text });
  }

  private changed(state: State, before: State): void {
    if (state.trace !== before.trace || state.closed !== before.closed) this.relayout(state);
    if (state.trace !== before.trace) void this.loadOverview();
    // The request leaves now, not with the next frame.
    this.update();
  }

  private relayout(state: State): void {
    this.layout = state.trace === null ? EMPTY_LAYOUT : layOut(state.trace, state.closed);
    this.parts.sheet.style.height = `${this.layout.height}px`;
  }

  private update(): void {
    const want = this.want();
    if (want !== null) this.loader.want(want);
    this.invalidate();
  }

  // What a frame needs.

  private ratio(): number {
    return window.devicePixelRatio || 1;
  }

  width(): number {
    return this.parts.stage.clientWidth;
  }

  private lines(margin = 0): [number, number] {
    const { scroll } = this.parts;
    return visibleLines(this.layout, scroll.scrollTop - margin, scroll.clientHeight + 2 * margin);
  }

  private tracks(lines: [number, number]): number[] {
    return this.layout.lines.slice(...lines).flatMap((line) => (line.kind === "track" ? [line.track.id] : []));
  }

  private want(): Want | null {
    const { trace, view } = this.controller.store.get();
    const px = Math.min(PX_MAX, Math.round(this.width() * this.ratio()));
    if (trace === null || trace.range === null || px <= 0) return null;
    const near = this.lines(this.parts.scroll.clientHeight / 2);
    return { view, range: trace.range, px, visible: this.tracks(this.lines()), tracks: this.tracks(near), version: trace.version, complete: trace.complete && !trace.following };
  }

  private async loadOverview(): Promise<void> {
    const { trace } = this.controller.store.get();
    if (trace === null || trace.range === null || this.overviewBusy || this.overview?.version === trace.version) return;
    if (!trace.complete && this.overview !== null && performance.now() - this.overview.at < OVERVIEW_EVERY_MS) return;
    const px = Math.min(PX_MAX, Math.max(200, Math.round(this.parts.minimap.clientWidth * this.ratio())));
    const tracks = trace.tracks.slice(0, OVERVIEW_TRACKS_MAX).map((track) => track.id);
    if (tracks.length === 0) return;
    this.overviewBusy = true;
    try {
      const picture = await getTiles(trace.range, px, tracks);
      this.overview = { version: trace.version, columns: overviewOf(picture, trace.range, px), at: performance.now() };
      this.loader.pin({ picture, range: trace.range, perPx: spanOf(trace.range) / px, tracks: new Set(tracks), version: trace.version });
      this.invalidate();
    } catch {
      // The minimap stays as it was; the request for the window reports what is wrong.
    } finally {
      this.overviewBusy = false;
    }
    if (this.controller.store.get().trace?.version !== trace.version) void this.loadOverview();
  }

  // Painting.

  private frame(state: State, clock: Clock, width: number, height: number): Frame {
    const found = state.search.answer;
    return {
      layout: this.layout,
      lines: this.lines(),
      view: state.view,
      width,
      height,
      ratio: this.ratio(),
      scrollTop: this.parts.scroll.scrollTop,
      theme: state.theme,
      grid: axisTicks(state.view, width, this.ratio(), clock).values,
      found: found && new Set(found.names.map((name) => name.id)),
    };
  }

  private paint(): void {
    if (this.frameAsked !== 0) cancelAnimationFrame(this.frameAsked);
    this.frameAsked = 0;
    const { store } = this.controller;
    const state = store.get();
    const { trace } = state;
    const { stage, rects, axis, minimap } = this.parts;
    stage.style.height = `${this.parts.scroll.clientHeight}px`;
    const sizes = [stage, axis, minimap].map((part) => sizeOf(part, this.ratio()));
    const { width, height } = sizes[0] as Size;
    resize(rects, { width, height });
    this.surfaces.resize(sizes);
    if (width === 0 || height === 0) return;
    const clock = clockOf(trace);
    const frame = this.frame(state, clock, width, height);
    const want = this.want();
    this.scene.build(frame, want === null ? [] : this.loader.candidates(want));
    this.painter.draw(this.scene.batch, width, height, GROUNDS[state.theme].background);
    this.loader.painted();
    if (this.painter.kind === "webgl2") this.overlay?.clear(frame);
    this.surfaces.draw(0, (context) => this.paintOverlay(context, this.overlay, frame, state));
    this.surfaces.draw(1, (context) => drawAxis(context, sizes[1] as Size, { ...state, pointer: this.pointerX, clock, ratio: this.ratio() }));
    this.surfaces.draw(2, (context) => this.paintMinimap(context, sizes[2] as Size, state));
    this.surfaces.present();
    this.showLines(frame);
    this.loadNames();
    this.frames++;
    if (this.firstPaintMs === null && this.layout.rows > 0 && (this.scene.drawn > 0 || this.pending() === 0)) this.firstPaintMs = performance.now();
  }

  private paintOverlay(context: CanvasRenderingContext2D, overlay: Overlay | null, frame: Frame, state: State): void {
    if (overlay === null) return;
    overlay.labels(frame, this.scene);
    const { trace } = state;
    if (trace) {
      overlay.gaps(frame, trace.damage);
      this.counters.draw(context, frame, trace, clockOf(trace));
      this.arrows.draw(context, frame, trace, state.slice);
    }
    overlay.mark(frame, state.mark);
    overlay.notes(frame, state.notes);
    overlay.pointer(frame, this.pointerX);
    const { hovered } = this;
    if (hovered) {
      const { picture, index, line } = hovered;
      overlay.outline(frame, { track: line.track.id, depth: picture.depth(index), start: picture.start(index), end: picture.end(index) }, false);
    }
    overlay.outline(frame, currentHit(state.search), true);
    overlay.outline(frame, state.slice, true);
  }

  private paintMinimap(context: CanvasRenderingContext2D, size: Size, state: State): void {
    const { trace, search } = state;
    if (trace?.range) {
      const hits = search.answer?.hits.map((hit) => hit.start) ?? [];
      const gaps = trace.damage;
      drawMinimap(context, size, { ...state, range: trace.range, columns: this.overview?.columns ?? null, gaps, hits, ratio: this.ratio() });
    } else {
      context.fillStyle = css(GROUNDS[state.theme].background);
      context.fillRect(0, 0, size.width, size.height);
    }
  }

  private showLines(frame: Frame): void {
    const key = `${frame.lines.join()}/${this.layout.height}/${this.layout.rows}`;
    const lines = this.layout.lines.slice(...frame.lines);
    const shown = key + lines.map((line) => line.key + line.detail + line.label + (line.kind === "counter" || line.open)).join();
    if (shown === this.shownLines) return;
    this.shownLines = shown;
    this.onLines(lines, this.layout.height);
  }

  /** Slices may bear names that came after the last list of names. */
  private loadNames(): void {
    const version = this.controller.store.get().trace?.version ?? 0;
    if (this.namesAsked === version) return;
    this.namesAsked = version;
    const before = this.names.size;
    void this.names.load().then(() => {
      if (this.names.size !== before) this.invalidate();
    }, () => undefined);
  }

  /** What is visible as a picture. */
  still(): HTMLCanvasElement {
    const state = this.controller.store.get();
    const clock = clockOf(state.trace);
    const { width, height } = sizeOf(this.parts.stage, this.ratio());
    const frame = this.frame(state, clock, width, height);
    const { scene } = this;
    const ratio = this.ratio();
    return drawStill({
      frame,
      scene,
      axis: (context, size) => drawAxis(context, size, { ...state, pointer: null, clock, ratio }),
      overlay: (context) => this.paintOverlay(context, new Overlay(context, this.names), frame, state),
    });
  }

  // The pointer and the keyboard.

  hover(x: number | null, y: number): Drawn | null {
    const ratio = this.ratio();
    this.pointerX = x;
    this.hovered = x === null ? null : this.scene.hit(x * ratio, y * ratio, 3 * ratio);
    this.invalidate();
    return this.hovered;
  }

  /** The file whose rows are at a height of the stage; none where there is only one. */
  fileAt(y: number): number | null {
    const { trace } = this.controller.store.get();
    if (trace === null || trace.files.length < 2) return null;
    const at = y + this.parts.scroll.scrollTop;
    const line = this.layout.lines.find((one) => at >= one.y && at < one.y + one.height);
    return line === undefined || line.kind === "counter" ? null : line.kind === "track" ? line.track.file : line.file;
  }

  hit(x: number, y: number): Drawn | null {
    const ratio = this.ratio();
    return this.scene.hit(x * ratio, y * ratio, 3 * ratio);
  }

  pointerShare(): number {
    return this.pointerX === null ? 0.5 : Math.min(1, Math.max(0, this.pointerX / Math.max(this.width(), 1)));
  }

  pointerTime(): number | null {
    const { view } = this.controller.store.get();
    return this.pointerX === null ? null : view.start + spanOf(view) * this.pointerShare();
  }

  scrollTo(track: number, depth: number): void {
    const line = this.layout.byTrack.get(track);
    const { scroll } = this.parts;
    if (!line) return;
    const y = depthY(line, depth);
    if (y < scroll.scrollTop + DEPTH_HEIGHT || y > scroll.scrollTop + scroll.clientHeight - 2 * DEPTH_HEIGHT) scroll.scrollTop = Math.max(0, y - scroll.clientHeight / 3);
  }

  /** The slices of a row that the last frame drew one by one. */
  private rowSlices(track: number, depth: number): SelectedSlice[] {
    const found: SelectedSlice[] = [];
    for (let n = 0; n < this.scene.drawn; n++) {
      const { picture, index, line } = this.scene.at(n);
      if (line.track.id !== track || picture.depth(index) !== depth || picture.isAggregate(index)) continue;
      found.push({ track, depth, start: picture.start(index), end: picture.end(index) });
    }
    return found.sort((a, b) => a.start - b.start);
  }

  neighbor(slice: SelectedSlice, step: 1 | -1): SelectedSlice | null {
    const row = this.rowSlices(slice.track, slice.depth);
    const next = step > 0 ? row.find((item) => item.start > slice.start) : row.findLast((item) => item.start < slice.start);
    return next ?? null;
  }

  related(slice: SelectedSlice, step: 1 | -1): SelectedSlice | null {
    const row = this.rowSlices(slice.track, slice.depth + step);
    const fits = (item: SelectedSlice): boolean => (step < 0 ? item.start <= slice.start && slice.end <= item.end : slice.start <= item.start && item.end <= slice.end);
    return row.find(fits) ?? null;
  }
}

/** The size of a part of the page in device pixels. */
function sizeOf(part: HTMLElement, ratio: number): Size {
  const pixels = (css: number): number => Math.max(0, Math.round(css * ratio));
  return { width: pixels(part.clientWidth), height: pixels(part.clientHeight) };
}
