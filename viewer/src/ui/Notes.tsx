// Notes: flags on the time axis. They live in the address only.

import { useEffect, useRef } from "preact/hooks";
import { printable } from "../format";
import type { Controller } from "../state/controller";
import { useStore } from "../state/store";
import { spanOf } from "../window";

export function NoteFlags({ controller }: { controller: Controller }) {
  const { store } = controller;
  const notes = useStore(store, (state) => state.notes);
  const view = useStore(store, (state) => state.view);
  const editing = useStore(store, (state) => state.editing);
  if (notes.length === 0) return null;
  return (
    <div class="notes">
      {notes.map((note, index) => {
        const left = ((note.at - view.start) / spanOf(view)) * 100;
        if (left < 0 || left > 100) return null;
        const style = { left: `${left}%` };
        return index === editing ? (
          <NoteField key={index} text={note.text} left={left} done={(text) => controller.changeNote(index, text)} />
        ) : (
          <button type="button" key={index} class="note" style={style} onClick={() => store.set({ editing: index })} title={`${printable(note.text)} (click to change or remove)`}>
            <bdi>{printable(note.text, 60)}</bdi>
          </button>
        );
      })}
    </div>
  );
}

function NoteField({ text, left, done }: { text: string; left: number; done: (text: string | null) => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  // Enter takes the field away, which blurs it: only the first end counts.
  const ended = useRef(false);
  const end = (result: string): void => {
    if (!ended.current) done(result);
    ended.current = true;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") end(field.current?.value ?? "");
    else if (event.key === "Escape") end(text);
  };
  const style = left > 70 ? { right: `${100 - left}%` } : { left: `${left}%` };
  return (
    <span class="note-field" style={style}>
      <input ref={field} aria-label="Note" maxLength={200} value={text} placeholder="Note, then Enter; empty removes it" onKeyDown={onKeyDown} onBlur={(event) => end(event.currentTarget.value)} />
    </span>
  );
}
