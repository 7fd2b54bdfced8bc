// What each key does. The help is made of the same table, so that it cannot miss one.

export type Action =
  | "zoomIn" | "zoomOut" | "panLeft" | "panRight" | "scrollUp" | "scrollDown"
  | "fit" | "fitMark" | "mark" | "note" | "search" | "nextHit" | "previousHit"
  | "nextSlice" | "previousSlice" | "parentSlice" | "childSlice" | "clear" | "help" | "sql" | "theme" | "panel";

export interface KeyRow {
  keys: readonly string[];
  action: Action;
  text: string;
}

export const KEYS: readonly KeyRow[] = [
  { keys: ["w", "+", "="], action: "zoomIn", text: "Zoom in, at the pointer" },
  { keys: ["s", "-"], action: "zoomOut", text: "Zoom out" },
  { keys: ["a", "ArrowLeft"], action: "panLeft", text: "Move left" },
  { keys: ["d", "ArrowRight"], action: "panRight", text: "Move right" },
  { keys: ["ArrowUp"], action: "scrollUp", text: "Scroll the rows up" },
  { keys: ["ArrowDown"], action: "scrollDown", text: "Scroll the rows down" },
  { keys: ["f"], action: "fit", text: "Fit the complete trace" },
  { keys: ["z"], action: "fitMark", text: "Zoom to the marked range or the selected slice" },
  { keys: ["m"], action: "mark", text: "Mark the selected slice's range, or the visible one" },
  { keys: ["e"], action: "note", text: "Write a note at the pointer's time" },
  { keys: ["/"], action: "search", text: "Search names: text, or /regular expression/" },
  { keys: ["n"], action: "nextHit", text: "Next hit" },
  { keys: ["N"], action: "previousHit", text: "Previous hit" },
  { keys: ["."], action: "nextSlice", text: "Next slice of the row" },
  { keys: [","], action: "previousSlice", text: "Previous slice of the row" },
  { keys: ["["], action: "parentSlice", text: "Select the slice's caller" },
  { keys: ["]"], action: "childSlice", text: "Select the slice's first callee" },
  { keys: ["q"], action: "sql", text: "Open the SQL panel" },
  { keys: ["p"], action: "panel", text: "Show or hide the panel" },
  { keys: ["t"], action: "theme", text: "Dark or light" },
  { keys: ["Escape"], action: "clear", text: "Clear the selection, then the mark" },
  { keys: ["?"], action: "help", text: "This help" },
];

const BY_KEY = new Map<string, Action>(KEYS.flatMap((row) => row.keys.map((key) => [key, row.action] as const)));

export interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** The action of a key, or null. Letters count in both cases, unless both mean something. */
export function actionOf(event: Pressed): Action | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  return BY_KEY.get(event.key) ?? BY_KEY.get(event.key.toLowerCase()) ?? null;
}
