// A table that sorts by its columns and shows long results in steps.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { formatCount } from "../format";

export interface Column<Row> {
  title: string;
  /** Shown after the title, faint: the unit. */
  unit?: string;
  align: "left" | "right";
  value: (row: Row) => number | bigint | string | null;
  show: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  /** Column to sort by at first, or -1 for the given order. */
  sort: number;
  /** What a click on a row does; null for rows that lead nowhere. */
  go?: (row: Row) => (() => void) | null;
  empty: string;
}

const ROWS_STEP = 200;

export function DataTable<Row>({ caption, columns, rows, sort, go, empty }: Props<Row>) {
  const [order, setOrder] = useState({ column: sort, descending: true });
  const [most, setMost] = useState(ROWS_STEP);
  if (rows.length === 0) return <p class="empty-table">{empty}</p>;
  const column = columns[order.column];
  const sorted = column ? [...rows].sort((a, b) => compare(column.value(a), column.value(b)) * (order.descending ? -1 : 1)) : rows;
  return (
    <div class="table-box">
      <table class="data">
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((item, i) => (
              <th key={i} scope="col" class={item.align} aria-sort={order.column === i ? (order.descending ? "descending" : "ascending") : "none"}>
                <button type="button" onClick={() => setOrder({ column: i, descending: order.column === i ? !order.descending : item.align === "right" })}>
                  {item.title}
                  {item.unit ? <span class="faint"> {item.unit}</span> : null}
                  <span aria-hidden="true" class="sorted">{order.column === i ? (order.descending ? "▾" : "▴") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, most).map((row, i) => <TableRow key={i} row={row} columns={columns} act={go?.(row) ?? null} />)}
        </tbody>
      </table>
      {sorted.length > most && (
        <button type="button" class="more" onClick={() => setMost(most + ROWS_STEP * 5)}>
          Show more of {formatCount(sorted.length)} rows
        </button>
      )}
    </div>
  );
}

function TableRow<Row>({ row, columns, act }: { row: Row; columns: Column<Row>[]; act: (() => void) | null }) {
  const onKeyDown = (event: KeyboardEvent): void => {
    if (act && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      act();
    }
  };
  const extra = act ? { class: "go", tabIndex: 0, onClick: act, onKeyDown, title: "Show on the timeline" } : {};
  return (
    <tr {...extra}>
      {columns.map((column, i) => <td key={i} class={column.align}>{column.show(row)}</td>)}
    </tr>
  );
}

export function compare(a: number | bigint | string | null, b: number | bigint | string | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === "string" || typeof b === "string") return String(a).localeCompare(String(b));
  return a < b ? -1 : a > b ? 1 : 0;
}
