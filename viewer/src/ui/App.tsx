// The page: bar, timeline, panel, and what covers them.

import { useEffect } from "preact/hooks";
import type { Names } from "../names";
import { actionOf } from "../keys";
import type { Controller } from "../state/controller";
import { useStore } from "../state/store";
import { Bar } from "./Bar";
import { Help } from "./Help";
import { Panel } from "./Panel";
import { Perfetto } from "./Perfetto";
import { Timeline } from "./Timeline";

export function App({ controller, names }: { controller: Controller; names: Names }) {
  const { store } = controller;
  const theme = useStore(store, (state) => state.theme);
  const message = useStore(store, (state) => state.message);
  const help = useStore(store, (state) => state.help);
  const perfetto = useStore(store, (state) => state.perfetto);
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  useTitle(controller);
  return (
    <>
      <Bar controller={controller} />
      <Notices controller={controller} />
      <Timeline controller={controller} names={names} />
      <Panel controller={controller} />
      <div class="visually-hidden" role="status" aria-live="polite">{message}</div>
      {help && <Help controller={controller} />}
      {perfetto && <Perfetto controller={controller} />}
    </>
  );
}

function useTitle(controller: Controller): void {
  const name = useStore(controller.store, (state) => state.trace?.files.map((file) => file.name.slice(file.name.lastIndexOf("/") + 1)).join(", ") ?? "");
  useEffect(() => {
    document.title = name === "" ? "anytrace" : `${name.slice(0, 80)} · anytrace`;
  }, [name]);
}

/** True if keys belong to what has the focus: a field, the editor (in a shadow tree), a dialog's list. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Calls `run` for keys that mean something; returns how to stop. */
export function listenToKeys(controller: Controller, anchor: () => number): () => void {
  const onKey = (event: KeyboardEvent): void => {
    if (isTyping(event)) return;
    const action = actionOf(event);
    if (action === null) return;
    const target = event.composedPath()[0];
    const movesInside = target instanceof HTMLElement && target.closest("[data-arrows]") !== null && event.key.startsWith("Arrow");
    if (movesInside) return;
    event.preventDefault();
    controller.run(action, event.repeat, anchor());
  };
  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

function Notices({ controller }: { controller: Controller }) {
  const error = useStore(controller.store, (state) => state.error);
  const trace = useStore(controller.store, (state) => state.trace);
  const reading = trace !== null && !trace.complete;
  return (
    <>
      {error !== null && (
        <div class="notice error" role="alert">
          <strong>Problem:</strong> {error}
        </div>
      )}
      {reading && (
        <progress class="progress" max={1} value={trace.progress} aria-label="Reading the trace" />
      )}
    </>
  );
}
