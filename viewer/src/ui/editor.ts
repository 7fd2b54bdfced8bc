// CodeMirror for SQL. It lives in a shadow tree: there it adopts style sheets, which the page's policy allows, where it
// would otherwise write style elements, which the policy forbids.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { SqlTable } from "../model";

export interface Editor {
  text(): string;
  insert(text: string): void;
  destroy(): void;
}

// Custom properties of the page reach into the shadow tree, so the theme follows dark and light.
const THEME = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--field)", fontSize: "12.5px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--faint)", border: "none" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--choice)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--ink)", border: "1px solid var(--line)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
});

const COLORS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" },
  { tag: tags.number, color: "var(--number)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
]);

export function makeEditor(parent: HTMLElement, text: string, tables: readonly SqlTable[], run: () => void, changed: (text: string) => void): Editor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const schema = Object.fromEntries(tables.map((table) => [table.table, table.columns.map((column) => ({ label: column.name, detail: column.type }))]));
  const runs = (): boolean => {
    run();
    return true;
  };
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), autocompletion(),
      keymap.of([{ key: "Mod-Enter", run: runs, preventDefault: true }, ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
      sql({ dialect: PostgreSQL, schema, upperCaseKeywords: true }),
      syntaxHighlighting(COLORS), THEME, EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "SQL" }),
      EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
    ],
  });
  const view = new EditorView({ state, parent: root as unknown as HTMLElement, root });
  return {
    text: () => view.state.doc.toString(),
    insert: (words) => {
      view.dispatch(view.state.replaceSelection(words));
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}
