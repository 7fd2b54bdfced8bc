// The dialog that opens the marked or visible range in Perfetto's own page.

import { useEffect, useRef, useState } from "preact/hooks";
import { errorText, isAbort } from "../api";
import { formatBytes, formatDuration } from "../format";
import { handOver, loadWindow, PERFETTO } from "../perfetto";
import { baseName } from "../rows";
import { clockOf, type Controller } from "../state/controller";
import { useStore } from "../state/store";
import { spanOf } from "../window";

export function Perfetto({ controller }: { controller: Controller }) {
  const { store } = controller;
  const trace = useStore(store, (state) => state.trace);
  const range = useStore(store, (state) => state.mark ?? state.view);
  const dialog = useRef<HTMLDialogElement>(null);
  const [bytes, setBytes] = useState<ArrayBuffer | null>(null);
  const [words, setWords] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const ready = trace !== null && trace.range !== null;
  useEffect(() => {
    if (!ready) return undefined;
    const abort = new AbortController();
    setBytes(null);
    setWords("");
    loadWindow(range, abort.signal).then(setBytes, (error) => {
      if (!isAbort(error)) setWords(errorText(error));
    });
    return () => abort.abort();
  }, [ready, range.start, range.end]);
  const title = trace?.files.map((file) => baseName(file.name)).join(", ") ?? "";
  const open = (): void => {
    const page = window.open(PERFETTO);
    if (page === null || bytes === null) return setWords("The browser opened no tab: allow it to, and press the button again");
    setWords("Waiting for Perfetto's page…");
    handOver(page, bytes, title).then(() => store.set({ perfetto: false }), (error) => setWords(errorText(error)));
  };
  return (
    <dialog class="help" ref={dialog} onClose={() => store.set({ perfetto: false })} aria-labelledby="perfetto-title">
      <h2 id="perfetto-title">Open in Perfetto</h2>
      <p>
        {ready ? `${formatDuration(spanOf(range), clockOf(trace))} of the trace` : "The trace is being opened"}
        {bytes === null ? (words === "" ? ": being converted…" : "") : `: ${formatBytes(bytes.byteLength)}.`}
      </p>
      <p class="faint">The page {PERFETTO} is loaded from the network in another tab. The trace stays in this browser.</p>
      <p role="status">{words}</p>
      <div class="buttons">
        <button type="button" class="primary" id="perfetto-open" disabled={bytes === null} onClick={open}>Open Perfetto</button>
        <button type="button" onClick={() => dialog.current?.close()}>Close</button>
      </div>
    </dialog>
  );
}
