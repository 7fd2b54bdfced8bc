// The page's state in one place. Parts of the page subscribe; the painter reads it at each frame.

import { useEffect, useState } from "preact/hooks";
import type { Theme } from "../colors";
import type { Hit, Range, SearchAnswer, Trace } from "../model";
import type { Note, SliceRef } from "../url";

export interface SelectedSlice extends SliceRef {
  end: number;
}

export interface SearchState {
  query: string;
  busy: boolean;
  error: string | null;
  answer: SearchAnswer | null;
  /** Index of the hit that was walked to, or -1. */
  at: number;
}

export interface State {
  trace: Trace | null;
  view: Range;
  /** True until a person moves the view: it follows the trace's range while the trace is read. */
  fits: boolean;
  mark: Range | null;
  slice: SelectedSlice | null;
  notes: readonly Note[];
  closed: ReadonlySet<string>;
  tab: string | null;
  theme: Theme;
  themeChosen: boolean;
  search: SearchState;
  sql: string;
  /** What stopped the page, in words. */
  error: string | null;
  /** A short message for the status line, read aloud by screen readers. */
  message: string;
  help: boolean;
  /** The dialog that hands the marked or visible range to Perfetto's own page. */
  perfetto: boolean;
  /** Index of the note that is being edited, or -1. */
  editing: number;
  panelHeight: number;
}

export const NO_SEARCH: SearchState = { query: "", busy: false, error: null, answer: null, at: -1 };

export class Store {
  private state: State;
  private readonly listeners = new Set<(state: State, before: State) => void>();

  constructor(first: State) {
    this.state = first;
  }

  get(): State {
    return this.state;
  }

  set(patch: Partial<State>): void {
    const before = this.state;
    this.state = { ...before, ...patch };
    for (const listener of this.listeners) listener(this.state, before);
  }

  subscribe(listener: (state: State, before: State) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** A part of the state; the component is drawn again when that part is another value. */
export function useStore<T>(store: Store, select: (state: State) => T): T {
  const [value, setValue] = useState(() => select(store.get()));
  useEffect(() => {
    const update = (): void => setValue(() => select(store.get()));
    update();
    return store.subscribe(update);
  }, [store]);
  return value;
}

/** The hit that was walked to. */
export function currentHit(search: SearchState): Hit | null {
  return search.answer?.hits[search.at] ?? null;
}
