// The bar at the top: what is open, search, buttons.

import { useEffect, useRef, useState } from "preact/hooks";
import { formatBytes, formatCount, formatDuration, printable, readLength, type Clock } from "../format";
import { exportPath } from "../api";
import type { TraceFile } from "../model";
import { baseName, plural } from "../rows";
import { clockOf, type Controller } from "../state/controller";
import { useStore } from "../state/store";
import { spanOf } from "../window";

export function Bar({ controller }: { controller: Controller }) {
  const { store } = controller;
  const theme = useStore(store, (state) => state.theme);
  return (
    <header class="bar">
      <img src="./favicon.svg" alt="" width={20} height={20} />
      <Files controller={controller} />
      <Search controller={controller} />
      <nav class="buttons" aria-label="Actions">
        <button type="button" onClick={() => controller.fit()} title="Fit the complete trace (f)">Fit</button>
        <button type="button" onClick={() => controller.markHere()} title="Mark the selected slice or the visible range (m)">Mark</button>
        <button type="button" onClick={() => controller.addNote(null)} title="Write a note (e)">Note</button>
        <Export controller={controller} />
        <button type="button" onClick={() => controller.run("theme", false, 0)} title="Dark or light (t)" aria-label={theme === "dark" ? "Light colors" : "Dark colors"}>
          {theme === "dark" ? "Light" : "Dark"}
        </button>
        <button type="button" onClick={() => store.set({ help: true })} title="Keyboard help (?)" aria-label="Keyboard help">?</button>
      </nav>
    </header>
  );
}

function Files({ controller }: { controller: Controller }) {
  const trace = useStore(controller.store, (state) => state.trace);
  if (trace === null) return <div class="files"><span class="faint">Opening the trace…</span></div>;
  const clock = clockOf(trace);
  const damaged = trace.files.reduce((sum, file) => sum + file.damage, 0);
  const amounts = [
    trace.range === null ? null : clock.unit === "seq" ? plural(Math.round(spanOf(trace.range)), "record") : formatDuration(spanOf(trace.range), clock),
    trace.slices > 0 ? plural(trace.slices, "slice") : null,
    trace.instants > 0 ? plural(trace.instants, "instant") : null,
    damaged > 0 ? plural(damaged, "damaged range") : null,
  ].filter((text) => text !== null);
  return (
    <div class="files">
      {trace.files.slice(0, 4).map((file) => (
        <span class="file" key={file.index} title={`${printable(file.name, 1000)} · ${formatBytes(file.bytes)}`}>
          <bdi class="file-name">{printable(baseName(file.name), 60)}</bdi>
          {file.format !== "" && <span class="chip">{printable(file.format, 20)}</span>}
          {trace.files.length > 1 && <Offset file={file} clock={clock} controller={controller} />}
        </span>
      ))}
      {trace.files.length > 4 && <span class="faint">and {formatCount(trace.files.length - 4)} more</span>}
      <span class="faint amounts">{amounts.join(" · ")}{trace.complete ? "" : ` · reading, ${Math.round(trace.progress * 100)} %`}</span>
    </div>
  );
}

/** By how much a file is moved on the common axis: typed here, or dragged on the timeline. */
function Offset({ file, clock, controller }: { file: TraceFile; clock: Clock; controller: Controller }) {
  const unit = clock.nsPerUnit === null ? clock.unit === "seq" ? "records" : "ticks" : "ns";
  const scale = clock.nsPerUnit ?? 1;
  const change = (text: string): void => void controller.move(file.index, (readLength(text, unit === "ns") ?? Number.NaN) / scale);
  return (
    <input
      class="offset" type="text" inputMode="numeric" spellcheck={false} autocomplete="off" aria-label={`Offset of ${printable(baseName(file.name), 60)}`}
      title={`Moved on the axis by: ${unit === "ns" ? "such as 1.5ms, or nanoseconds" : unit}. Alt and drag on its rows moves it too; a double click takes it back.`}
      value={file.moved === 0 ? "" : formatDuration(file.moved, clock)} placeholder="+0"
      onChange={(event) => change(event.currentTarget.value)} onDblClick={() => void controller.move(file.index, 0)}
      onKeyDown={(event) => event.stopPropagation()}
    />
  );
}

function Search({ controller }: { controller: Controller }) {
  const search = useStore(controller.store, (state) => state.search);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const { screen } = controller;
    if (screen) screen.focusSearch = () => field.current?.select();
  }, [controller, controller.screen]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") {
      event.preventDefault();
      controller.walk(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      if (search.query === "") field.current?.blur();
      controller.search("");
    }
  };
  const total = search.answer?.total ?? 0;
  const hits = search.answer?.hits.length ?? 0;
  return (
    <search class="search">
      <input
        ref={field} id="search" type="search" placeholder="Search names  /" aria-label="Search names" autocomplete="off" spellcheck={false}
        value={search.query} onInput={(event) => controller.search(event.currentTarget.value)} onKeyDown={onKeyDown}
      />
      {search.query !== "" && (
        <span class={search.error === null ? "count" : "count bad"} id="search-count" role="status" title={search.error ?? ""}>
          {search.error !== null ? printable(search.error, 80) : search.busy ? "…" : search.at >= 0 ? `${formatCount(search.at + 1)} of ${formatCount(total)}` : plural(total, "hit")}
          {search.error === null && total > hits && hits > 0 ? ` (first ${formatCount(hits)} walked)` : ""}
        </span>
      )}
      <button type="button" disabled={hits === 0} onClick={() => controller.walk(-1)} aria-label="Previous hit" title="Previous hit (N)">↑</button>
      <button type="button" disabled={hits === 0} onClick={() => controller.walk(1)} aria-label="Next hit" title="Next hit (n)">↓</button>
    </search>
  );
}

const FORMS: readonly [string, string][] = [
  ["native", "The trace's own format"],
  ["chrome", "Chrome JSON"],
  ["perfetto", "Perfetto"],
  ["speedscope", "Speedscope"],
  ["folded", "Folded stacks"],
  ["pprof", "pprof"],
  ["csv", "CSV"],
  ["svg", "SVG picture"],
];

function Export({ controller }: { controller: Controller }) {
  const [open, setOpen] = useState(false);
  const mark = useStore(controller.store, (state) => state.mark);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    const close = (event: Event): void => {
      if (!(event.target instanceof Node) || !box.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [open]);
  const leave = (run: () => void): void => {
    setOpen(false);
    run();
  };
  return (
    <div class="menu" ref={box} onKeyDown={(event) => event.key === "Escape" && setOpen(false)}>
      <button type="button" aria-expanded={open} aria-haspopup="true" onClick={() => setOpen(!open)} title="Save the marked or visible range">Export</button>
      {open && (
        <div class="menu-list" role="group" aria-label="Export">
          <p class="faint">{mark ? "The marked range as" : "The visible range as"}</p>
          {FORMS.map(([form, text]) => (
            <a key={form} href={exportPath(form, mark ?? controller.store.get().view)} download onClick={() => setOpen(false)}>{text}</a>
          ))}
          <button type="button" onClick={() => leave(() => controller.screen?.savePicture())}>PNG of what is visible</button>
          <button type="button" onClick={() => leave(() => controller.store.set({ perfetto: true }))}>Open in Perfetto…</button>
        </div>
      )}
    </div>
  );
}
