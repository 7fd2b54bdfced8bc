// The keyboard help.

import { useEffect, useRef } from "preact/hooks";
import { KEYS } from "../keys";
import type { Controller } from "../state/controller";

const SHOWN: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };

const POINTER: readonly [string, string][] = [
  ["Drag", "Move in time and rows"],
  ["Shift + drag", "Mark a range; on the time axis a plain drag does"],
  ["Alt + drag", "Move a file against the others; a double click on its offset takes it back"],
  ["Wheel", "Scroll the rows; zoom where all rows fit"],
  ["Ctrl + wheel, pinch", "Zoom at the pointer"],
  ["Shift + wheel", "Move in time"],
  ["Click", "Select a slice; open an aggregate"],
];

export function Help({ controller }: { controller: Controller }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const close = (): void => controller.store.set({ help: false });
  return (
    <dialog class="help" ref={dialog} onClose={close} aria-labelledby="help-title">
      <h2 id="help-title">Keyboard and pointer</h2>
      <div class="help-columns">
        <table>
          <caption class="visually-hidden">Keys</caption>
          <tbody>
            {KEYS.map((row) => (
              <tr key={row.action}>
                <th scope="row">{row.keys.map((key) => <kbd key={key}>{SHOWN[key] ?? key}</kbd>)}</th>
                <td>{row.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <div>
          <table>
            <caption class="visually-hidden">Pointer</caption>
            <tbody>
              {POINTER.map(([gesture, text]) => (
                <tr key={gesture}>
                  <th scope="row">{gesture}</th>
                  <td>{text}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <h3>Reading the picture</h3>
          <ul>
            <li>A full block is one slice. Its color belongs to its name.</li>
            <li>A block that is filled from below is an aggregate of slices too narrow to draw: the height is the share of time in which they ran, the color that of the longest one.</li>
            <li>Arrows join what belongs together, such as the polls of a task: all of the window where they are few, and always those of the selected slice.</li>
            <li>‹ and › show that a slice began before the trace or was still open at its end.</li>
            <li>Hatching covers damaged ranges and losses.</li>
            <li>The address keeps the view, the mark and notes: copy it to come back.</li>
          </ul>
        </div>
      </div>
      <form method="dialog">
        <button type="submit" class="primary">Close</button>
      </form>
    </dialog>
  );
}
