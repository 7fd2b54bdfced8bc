// The range that panels describe: the mark, or what is visible once it rests.

import { useEffect, useState } from "preact/hooks";
import { errorText, isAbort } from "../api";
import type { Range } from "../model";
import type { Controller } from "../state/controller";
import { useStore } from "../state/store";

const SETTLE_MS = 250;

export interface Chosen extends Range {
  isMark: boolean;
}

export function useRange(controller: Controller): Chosen | null {
  const [range, setRange] = useState<Chosen | null>(null);
  const mark = useStore(controller.store, (state) => state.mark);
  const view = useStore(controller.store, (state) => state.view);
  const known = useStore(controller.store, (state) => state.trace?.range ?? null);
  const from = mark ?? view;
  useEffect(() => {
    if (known === null) return undefined;
    // The trace's last slice may begin at its end: the server's ranges exclude their ends.
    const end = from.end >= known.end ? from.end + 1 : from.end;
    const timer = setTimeout(() => setRange({ start: from.start, end, isMark: mark !== null }), range === null ? 0 : SETTLE_MS);
    return () => clearTimeout(timer);
  }, [from.start, from.end, mark !== null, known?.start, known?.end]);
  return range;
}

export interface Loaded<T> {
  value: T | null;
  busy: boolean;
  error: string | null;
}

/** The answer to a request that depends on `keys`; a newer request aborts the older one. */
export function useLoaded<T>(load: ((signal: AbortSignal) => Promise<T>) | null, keys: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>({ value: null, busy: true, error: null });
  useEffect(() => {
    if (load === null) return undefined;
    const abort = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    load(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ value, busy: false, error: null });
      },
      (error: unknown) => {
        if (!isAbort(error) && !abort.signal.aborted) setState({ value: null, busy: false, error: errorText(error) });
      },
    );
    return () => abort.abort();
  }, [...keys]);
  return state;
}
