// SQL: an editor, the result as a table and as a chart; rows with a start lead to the timeline.

import { useEffect, useRef, useState } from "preact/hooks";
import { errorText, getTables, isAbort, runSql } from "../api";
import { formatCount } from "../format";
import type { SqlAnswer, SqlTable } from "../model";
import type { Controller } from "../state/controller";
import { useStore } from "../state/store";
import type { Editor } from "./editor";
import { SqlResult } from "./SqlResult";

const FIRST_SQL = "SELECT name, count(*) AS calls, sum(duration) AS total\nFROM spans GROUP BY name ORDER BY total DESC LIMIT 50";
const FIRST_SQL_EVENTS = "SELECT kind, count(*) AS events\nFROM events GROUP BY kind ORDER BY events DESC LIMIT 50";

export function SqlTab({ controller }: { controller: Controller }) {
  const { store } = controller;
  const trace = useStore(store, (state) => state.trace);
  const [answer, setAnswer] = useState<SqlAnswer | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState<AbortController | null>(null);
  const [tables, setTables] = useState<SqlTable[]>([]);
  const editor = useRef<Editor | null>(null);
  const box = useRef<HTMLDivElement>(null);

  const run = (): void => {
    const abort = new AbortController();
    const text = editor.current?.text() ?? store.get().sql;
    setBusy(abort);
    setError(null);
    runSql(text, abort.signal)
      .then(setAnswer, (failed: unknown) => {
        if (!isAbort(failed)) setError(errorText(failed));
      })
      .finally(() => setBusy(null));
  };

  useEffect(() => {
    if (trace === null || !trace.sql) return undefined;
    let gone = false;
    const first = store.get().sql || (trace.slices > 0 ? FIRST_SQL : FIRST_SQL_EVENTS);
    void Promise.all([import("./editor"), getTables().catch(() => [])]).then(([{ makeEditor }, found]) => {
      if (gone || box.current === null) return;
      setTables(found);
      editor.current = makeEditor(box.current, first, found, run, (text) => store.set({ sql: text }));
    });
    return () => {
      gone = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, [trace?.sql]);

  if (trace === null) return <p class="empty-table">Opening the trace…</p>;
  if (!trace.sql) return <p class="empty-table">SQL needs the program <code>anytrace-query</code>, which is not installed: <code>cargo install anytrace-query</code>, then start <code>anytrace view</code> again.</p>;
  return (
    <div class="sql">
      <div class="sql-input">
        <div class="editor" ref={box} />
        <div class="sql-actions">
          {busy ? <button type="button" onClick={() => busy.abort()}>Stop</button> : <button type="button" class="primary" onClick={run} title="Run (Ctrl+Enter)">Run</button>}
          <span class="faint">{busy ? "Running…" : error !== null ? "" : answer ? resultText(answer) : `${formatCount(tables.length)} tables; Ctrl+Space completes, Ctrl+Enter runs`}</span>
        </div>
        <Tables tables={tables} insert={(text) => editor.current?.insert(text)} />
      </div>
      <div class="sql-output" aria-live="polite">
        {error !== null && <pre class="sql-error bad">{error}</pre>}
        {error === null && answer && <SqlResult answer={answer} controller={controller} />}
      </div>
    </div>
  );
}

function resultText(answer: SqlAnswer): string {
  const rows = `${formatCount(answer.rows.length)} ${answer.rows.length === 1 ? "row" : "rows"}${answer.truncated ? " (more were cut)" : ""}`;
  return answer.elapsedMs === null ? rows : `${rows} in ${formatCount(answer.elapsedMs)} ms`;
}

function Tables({ tables, insert }: { tables: readonly SqlTable[]; insert: (text: string) => void }) {
  return (
    <div class="tables">
      {tables.map((table) => (
        <details key={table.table}>
          <summary>{table.table}</summary>
          <ul>
            {table.columns.map((column) => (
              <li key={column.name}>
                <button type="button" class="plain" onClick={() => insert(column.name)} title="Insert">{column.name}</button> <span class="faint">{column.type}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </div>
  );
}
