// The result of SQL as a table or a chart.

import { useMemo, useState } from "preact/hooks";
import { formatCount, formatShortCount, printable } from "../format";
import { cellText, type Json } from "../json";
import type { SqlAnswer } from "../model";
import { chartColumns, chartOf, placesOf, type Chart } from "../sqlrows";
import type { Controller } from "../state/controller";
import { useStore } from "../state/store";
import { DataTable, type Column } from "./DataTable";
import { Plot, plotColors } from "./plot";

export function SqlResult({ answer, controller }: { answer: SqlAnswer; controller: Controller }) {
  const [shape, setShape] = useState<"table" | "chart">("table");
  const [column, setColumn] = useState<number | null>(null);
  const charts = useMemo(() => chartColumns(answer), [answer]);
  const chart = useMemo(() => chartOf(answer, column !== null && charts.includes(column) ? column : null), [answer, column]);
  const origin = useStore(controller.store, (state) => state.trace?.origin ?? 0n);
  const places = useMemo(() => placesOf(answer, origin), [answer, origin]);
  const go = (row: readonly Json[]): (() => void) | null => {
    const place = places?.(row) ?? null;
    if (place === null) return null;
    return () => {
      controller.goTo(place, place.track, place.depth ?? 0);
      if (place.track !== null && place.depth !== null) controller.store.set({ slice: { track: place.track, depth: place.depth, start: place.start, end: place.end } });
    };
  };
  return (
    <>
      {answer.diagnostics.map((text, i) => <p key={i} class="diagnostic">{printable(text, 500)}</p>)}
      {chart && (
        <div class="choices" role="group" aria-label="Form of the result">
          <button type="button" aria-pressed={shape === "table"} onClick={() => setShape("table")}>Table</button>
          <button type="button" aria-pressed={shape === "chart"} onClick={() => setShape("chart")}>Chart</button>
          {shape === "chart" && (
            <label>of <select value={column ?? ""} onChange={(event) => setColumn(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
              <option value="">{chart.yName}</option>
              {charts.map((i) => <option key={i} value={i}>{answer.columns[i]?.name}</option>)}
            </select></label>
          )}
        </div>
      )}
      {shape === "chart" && chart ? <ChartView chart={chart} controller={controller} /> : <DataTable caption="Result" columns={columnsOf(answer)} rows={answer.rows} sort={-1} go={go} empty="No rows." />}
    </>
  );
}

function columnsOf(answer: SqlAnswer): Column<Json[]>[] {
  return answer.columns.map((column, i) => {
    const isNumeric = /int|float|double|decimal/i.test(column.type) && !/dictionary/i.test(column.type);
    const value = (row: Json[]): number | bigint | string | null => {
      const cell = row[i] ?? null;
      return typeof cell === "number" || typeof cell === "bigint" || typeof cell === "string" || cell === null ? cell : cellText(cell);
    };
    return { title: column.name, unit: "", align: isNumeric ? "right" : "left", value, show: (row) => <Cell value={row[i] ?? null} /> };
  });
}

function Cell({ value }: { value: Json }) {
  if (value === null) return <span class="faint">null</span>;
  if (typeof value === "bigint") return <>{formatCount(value)}</>;
  if (typeof value === "number") return <>{Number.isInteger(value) ? formatCount(value) : value.toPrecision(6)}</>;
  return <bdi>{printable(cellText(value), 400)}</bdi>;
}

function ChartView({ chart, controller }: { chart: Chart; controller: Controller }) {
  useStore(controller.store, (state) => state.theme);
  const colors = plotColors();
  if (chart.kind === "bars") return <Bars chart={chart} />;
  return <Plot data={[chart.x, chart.y]} series={[{ label: chart.yName, color: colors.accent }]} xLabel={chart.xName} yText={formatShortCount} xText={formatShortCount} height={220} ink={colors.ink} grid={colors.grid} />;
}

function Bars({ chart }: { chart: Chart }) {
  const most = chart.y.reduce((max, value) => Math.max(max, value), 0) || 1;
  return (
    <ol class="flat-bars" aria-label={`${chart.yName} by ${chart.xName}`}>
      {chart.labels.map((label, i) => (
        <li key={i}>
          <bdi class="flat-label">{printable(label, 120)}</bdi>
          <span class="flat-track"><span class="flat-fill" style={{ width: `${(Math.max(0, chart.y[i] ?? 0) / most) * 100}%` }} /></span>
          <span class="flat-value">{formatShortCount(chart.y[i] ?? 0)}</span>
        </li>
      ))}
    </ol>
  );
}
