// What can be done with the page: every key, button and click ends in one of these.

import { errorText, getCall, getSearch, getTrace, isAbort, ServerError, setOffsets } from "../api";
import type { Action } from "../keys";
import { formatCount, formatDuration, printable, type Clock } from "../format";
import type { Hit, Range, Trace } from "../model";
import type { Names } from "../names";
import { plural } from "../rows";
import { MOVED_MAX, readFragment, writeFragment, type Bound, type Kept, type PerfettoWindow, type SliceRef } from "../url";
import { around, clamp, nonEmpty, pan, spanOf, zoom } from "../window";
import { NO_SEARCH, type SelectedSlice, type State, type Store } from "./store";

const POLL_MS = 250;
const ZOOM_STEP = 0.65;
const ZOOM_REPEAT = 0.85;
const PAN_STEP = 0.15;
const PAN_REPEAT = 0.07;
const URL_DELAY_MS = 150;
const SEARCH_DELAY_MS = 150;

/** What the timeline offers to actions that need to know where things are on the screen. */
export interface Screen {
  scrollTo(track: number, depth: number): void;
  scrollBy(pixels: number): void;
  /** Time under the pointer, or null if it is elsewhere. */
  pointerTime(): number | null;
  neighbor(slice: SelectedSlice, step: 1 | -1): SelectedSlice | null;
  related(slice: SelectedSlice, step: 1 | -1): SelectedSlice | null;
  focusSearch(): void;
  /** Saves what is visible as a picture. */
  savePicture(): void;
}

export function clockOf(trace: Trace | null): Clock {
  const unit = trace?.unit ?? "ns";
  const perSecond = trace?.ticksPerSecond ?? null;
  const nsPerUnit = unit === "ns" ? 1 : unit === "tick" && perSecond !== null && perSecond > 0 ? 1e9 / perSecond : null;
  return { unit, nsPerUnit, origin: trace?.range?.start ?? 0, wallStartNs: trace?.wallStartNs ?? null };
}

/** A window of the command line on the axis. */
export function boundsOf({ from, to }: PerfettoWindow, trace: Trace & { range: Range }): Range {
  const { nsPerUnit } = clockOf(trace);
  const at = (bound: Bound, open: number): number => {
    if (bound === null) return open;
    return bound.unit === "ns" ? trace.range.start + bound.value / (nsPerUnit ?? 1) : bound.value - Number(trace.origin);
  };
  return { start: at(from, trace.range.start), end: at(to, trace.range.end) };
}

export class Controller {
  screen: Screen | null = null;
  private searchAbort: AbortController | null = null;
  private searchTimer: ReturnType<typeof setTimeout> | null = null;
  private urlTimer: ReturnType<typeof setTimeout> | null = null;
  private kept: Kept;
  private lastFragment = "";
  /** Answers that were accepted: each is shown anew. */
  private accepted = 0;
  /** Enter was typed before the answer came: walk when it does. */
  private walkLater: 1 | -1 | null = null;

  constructor(
    readonly store: Store,
    readonly names: Names,
  ) {
    this.kept = readFragment(location.hash);
    setOffsets(this.kept.moved);
    store.subscribe((state, before) => this.keepLater(state, before));
    window.addEventListener("hashchange", () => this.followFragment());
    window.addEventListener("pagehide", () => this.keep());
  }

  // The trace.

  async start(): Promise<void> {
    for (;;) {
      const trace = await this.poll();
      const settled = trace !== null && trace.complete && !trace.following;
      if (settled) return;
      await new Promise((resolve) => setTimeout(resolve, trace === null && this.store.get().error !== null ? POLL_MS * 4 : POLL_MS));
    }
  }

  /** Asks for what changed; returns the trace as it is known now. */
  private async poll(): Promise<Trace | null> {
    const before = this.store.get().trace;
    try {
      const trace = await getTrace(before?.edition ?? null);
      if (trace !== null) await this.accept(trace);
      else if (this.store.get().error !== null) this.store.set({ error: before?.error ?? null });
    } catch (error) {
      this.store.set({ error: errorText(error) });
      // A refused token stays refused.
      if (error instanceof ServerError && error.status >= 400 && error.status < 500) await new Promise(() => undefined);
    }
    return this.store.get().trace;
  }

  private async accept(trace: Trace): Promise<void> {
    await this.names.load().catch(() => undefined);
    const state = this.store.get();
    const range = trace.range === null ? null : nonEmpty(trace.range);
    const patch: Partial<State> = { trace: { ...trace, range, version: ++this.accepted }, error: trace.error };
    if (range !== null) {
      if (state.trace?.range == null && this.kept.perfetto) Object.assign(patch, { view: clamp(boundsOf(this.kept.perfetto, { ...trace, range }), range), fits: false });
      else if (state.trace?.range == null && this.kept.view) Object.assign(patch, { view: clamp(this.kept.view, range), fits: false });
      else if (state.fits) patch.view = range;
    }
    const first = state.trace === null;
    this.store.set(patch);
    if (first) this.restore();
  }

  /** Moves a file on the axis by so much, in the axis' unit; 0 is where its own times are. */
  async move(file: number, offset: number): Promise<void> {
    const { trace } = this.store.get();
    const known = trace?.files[file];
    if (trace === null || known === undefined || !Number.isFinite(offset)) return;
    const moved = trace.files.map((one) => (one.index === file ? Math.max(-MOVED_MAX, Math.min(MOVED_MAX, Math.round(offset))) : one.moved));
    setOffsets(moved);
    try {
      const answer = await getTrace(null);
      if (answer !== null) await this.accept(answer);
      const name = printable(known.name.slice(known.name.lastIndexOf("/") + 1), 60);
      this.store.set({ slice: null, message: `${name} is moved by ${formatDuration(moved[file] ?? 0, clockOf(trace))}` });
    } catch (error) {
      this.store.set({ message: errorText(error) });
    }
  }

  moveBy(file: number, by: number): Promise<void> {
    return this.move(file, (this.store.get().trace?.files[file]?.moved ?? 0) + by);
  }

  /** Says how far a file is while it is dragged. */
  carry(file: number, by: number): void {
    const { trace } = this.store.get();
    if (trace !== null) this.store.set({ message: `Move by ${formatDuration((trace.files[file]?.moved ?? 0) + by, clockOf(trace))}` });
  }

  private restore(): void {
    const { slice, query } = this.kept;
    if (slice) void this.selectRef(slice);
    if (query) this.search(query);
  }

  // The view.

  get range(): Range | null {
    return this.store.get().trace?.range ?? null;
  }

  setView(view: Range, fits = false): void {
    const { range } = this;
    if (range === null) return;
    this.store.set({ view: clamp(view, range), fits });
  }

  zoomBy(factor: number, anchor: number): void {
    const { range } = this;
    if (range !== null) this.store.set({ view: zoom(this.store.get().view, range, factor, anchor), fits: false });
  }

  panBy(share: number): void {
    const { range } = this;
    if (range !== null) this.store.set({ view: pan(this.store.get().view, range, share), fits: false });
  }

  fit(): void {
    const { range } = this;
    if (range !== null) this.store.set({ view: range, fits: true, message: "Complete trace" });
  }

  /** Shows a range and, if given, scrolls to its row. */
  goTo(target: Range, track: number | null = null, depth = 0): void {
    const { range } = this;
    if (range === null) return;
    if (track !== null) this.reveal(track);
    this.store.set({ view: around(target, range), fits: false });
    if (track !== null) this.screen?.scrollTo(track, depth);
  }

  /** Opens the lines that hide a track. */
  private reveal(track: number): void {
    const { trace, closed } = this.store.get();
    const found = trace?.tracks.find((item) => item.id === track);
    if (!found) return;
    const keys = [`t${track}`, `p${found.file}/${found.process ?? ""}`];
    if (keys.some((key) => closed.has(key))) this.store.set({ closed: new Set([...closed].filter((key) => !keys.includes(key))) });
  }

  toggle(key: string): void {
    const closed = new Set(this.store.get().closed);
    if (!closed.delete(key)) closed.add(key);
    this.store.set({ closed });
  }

  toggleAll(): void {
    const { trace, closed } = this.store.get();
    if (trace === null) return;
    const keys = trace.tracks.map((track) => `t${track.id}`);
    this.store.set({ closed: keys.every((key) => closed.has(key)) ? new Set() : new Set(keys) });
  }

  // Mark, notes, selection.

  setMark(mark: Range | null): void {
    const clock = clockOf(this.store.get().trace);
    this.store.set({ mark, message: mark === null ? "Mark removed" : `Marked ${formatDuration(spanOf(mark), clock)}` });
    if (mark !== null && this.store.get().tab === null) this.store.set({ tab: "selection" });
  }

  markHere(): void {
    const { slice, view } = this.store.get();
    this.setMark(slice !== null && slice.end > slice.start ? { start: slice.start, end: slice.end } : view);
  }

  addNote(at: number | null): void {
    const { view, notes } = this.store.get();
    const note = { at: at ?? (view.start + view.end) / 2, text: "" };
    this.store.set({ notes: [...notes, note], editing: notes.length });
  }

  changeNote(index: number, text: string | null): void {
    const notes = this.store.get().notes.flatMap((note, i) => (i !== index ? [note] : text === null || text.trim() === "" ? [] : [{ ...note, text: text.trim() }]));
    this.store.set({ notes, editing: -1 });
  }

  select(slice: SelectedSlice | null): void {
    this.store.set({ slice });
    if (slice !== null) this.store.set({ tab: "call" });
  }

  /** Selects a slice of which the end is not known. */
  async selectRef(ref: SliceRef): Promise<void> {
    try {
      const call = await getCall(ref.track, ref.depth, ref.start);
      this.store.set({ slice: { ...ref, end: call.end } });
    } catch {
      this.store.set({ message: "The slice that the address names is not in this trace" });
    }
  }

  goToHit(hit: Hit): void {
    this.goTo(hit, hit.track, hit.depth);
    this.select({ track: hit.track, depth: hit.depth, start: hit.start, end: hit.end });
  }

  // Search.

  search(query: string): void {
    if (this.searchTimer !== null) clearTimeout(this.searchTimer);
    this.searchAbort?.abort();
    this.walkLater = null;
    if (query.trim() === "") {
      this.store.set({ search: NO_SEARCH });
      return;
    }
    this.store.set({ search: { ...NO_SEARCH, query, busy: true } });
    this.searchTimer = setTimeout(() => void this.runSearch(query), SEARCH_DELAY_MS);
  }

  private async runSearch(query: string): Promise<void> {
    const abort = new AbortController();
    this.searchAbort = abort;
    try {
      const answer = await getSearch(query, abort.signal);
      this.store.set({ search: { query, busy: false, error: null, answer, at: -1 }, message: `${plural(answer.total, "hit")} for ${query}` });
      if (this.walkLater !== null) this.walk(this.walkLater);
    } catch (error) {
      if (!isAbort(error)) this.store.set({ search: { ...NO_SEARCH, query, error: errorText(error) } });
    }
  }

  /** Walks to the next hit in time: from the last one, or from the window's left edge. */
  walk(step: 1 | -1): void {
    const { search, view } = this.store.get();
    const hits = search.answer?.hits ?? [];
    this.walkLater = search.busy ? step : null;
    if (hits.length === 0) return;
    let at = search.at + step;
    if (search.at < 0) {
      const next = hits.findIndex((hit) => hit.start >= view.start);
      at = step > 0 ? Math.max(next, 0) : (next < 0 ? hits.length : next) - 1;
    }
    at = (at + hits.length) % hits.length;
    this.store.set({ search: { ...search, at }, message: `Hit ${formatCount(at + 1)} of ${formatCount(search.answer?.total ?? 0)}` });
    const hit = hits[at];
    if (hit !== undefined) this.goToHit(hit);
  }

  // Keys.

  run(action: Action, repeated: boolean, anchor: number): void {
    const { store, screen } = this;
    const state = store.get();
    switch (action) {
      case "zoomIn":
        return this.zoomBy(repeated ? ZOOM_REPEAT : ZOOM_STEP, anchor);
      case "zoomOut":
        return this.zoomBy(1 / (repeated ? ZOOM_REPEAT : ZOOM_STEP), anchor);
      case "panLeft":
        return this.panBy(repeated ? -PAN_REPEAT : -PAN_STEP);
      case "panRight":
        return this.panBy(repeated ? PAN_REPEAT : PAN_STEP);
      case "scrollUp":
        return screen?.scrollBy(-60);
      case "scrollDown":
        return screen?.scrollBy(60);
      case "fit":
        return this.fit();
      case "fitMark":
        return this.fitMark();
      case "mark":
        return this.markHere();
      case "note":
        return this.addNote(screen?.pointerTime() ?? null);
      case "search":
        return screen?.focusSearch();
      case "nextHit":
        return this.walk(1);
      case "previousHit":
        return this.walk(-1);
      case "nextSlice":
        return this.step(screen?.neighbor.bind(screen), 1);
      case "previousSlice":
        return this.step(screen?.neighbor.bind(screen), -1);
      case "parentSlice":
        return this.step(screen?.related.bind(screen), -1);
      case "childSlice":
        return this.step(screen?.related.bind(screen), 1);
      case "clear":
        return this.clear();
      case "help":
        return store.set({ help: !state.help });
      case "sql":
        return store.set({ tab: state.tab === "sql" ? null : "sql" });
      case "theme":
        return store.set({ theme: state.theme === "dark" ? "light" : "dark", themeChosen: true });
      case "panel":
        return store.set({ tab: state.tab === null ? "selection" : null });
    }
  }

  private fitMark(): void {
    const { slice, mark } = this.store.get();
    const target = slice ?? mark;
    if (target !== null) this.goTo(target);
  }

  private step(find: ((slice: SelectedSlice, step: 1 | -1) => SelectedSlice | null) | undefined, step: 1 | -1): void {
    const { slice, view } = this.store.get();
    const next = slice && find?.(slice, step);
    if (!next) return;
    this.select(next);
    if (next.start < view.start || next.end > view.end) this.goTo(next, next.track, next.depth);
  }

  private clear(): void {
    const { help, perfetto, slice, mark, search } = this.store.get();
    if (help || perfetto) this.store.set({ help: false, perfetto: false });
    else if (slice !== null) this.store.set({ slice: null });
    else if (mark !== null) this.setMark(null);
    else if (search.query !== "") this.search("");
    else this.store.set({ tab: null });
  }

  // The address.

  private keepLater(state: State, before: State): void {
    const same = (["view", "fits", "mark", "slice", "notes", "closed", "tab", "theme", "search", "sql", "trace"] as const).every((key) => state[key] === before[key]);
    if (same || state.trace === null || this.urlTimer !== null) return;
    // Browsers refuse more than about 100 changes of the address in 10 seconds.
    this.urlTimer = setTimeout(() => this.keep(), URL_DELAY_MS);
  }

  private keep(): void {
    if (this.urlTimer !== null) clearTimeout(this.urlTimer);
    this.urlTimer = null;
    const state = this.store.get();
    if (state.trace === null) return;
    this.kept = {
      view: state.fits ? null : state.view,
      mark: state.mark,
      slice: state.slice && { track: state.slice.track, depth: state.slice.depth, start: state.slice.start },
      notes: state.notes.filter((note) => note.text !== ""),
      closed: [...state.closed],
      tab: state.tab,
      theme: state.themeChosen ? state.theme : null,
      query: state.search.query,
      sql: state.sql,
      moved: state.trace.files.map((file) => file.moved),
      perfetto: null,
    };
    const fragment = writeFragment(this.kept);
    if (fragment === this.lastFragment) return;
    this.lastFragment = fragment;
    history.replaceState(null, "", `#${fragment}`);
  }

  /** Files lie where an address says. */
  private async moveAll(moved: readonly number[]): Promise<void> {
    const files = this.store.get().trace?.files ?? [];
    if (files.every((file) => file.moved === (moved[file.index] ?? 0))) return;
    setOffsets(moved);
    const answer = await getTrace(null).catch(() => null);
    if (answer !== null) await this.accept(answer);
  }

  /** A person edited or pasted an address. */
  private followFragment(): void {
    const kept = readFragment(location.hash);
    const { range } = this;
    if (range === null) return;
    this.kept = kept;
    void this.moveAll(kept.moved);
    const view = kept.view ? clamp(kept.view, range) : range;
    this.store.set({ view, fits: kept.view === null, mark: kept.mark, notes: kept.notes, closed: new Set(kept.closed), tab: kept.tab });
    this.restore();
  }
}
