// What a result of SQL offers besides its cells: ways to the timeline, and a chart.

import type { Json } from "./json";
import type { SqlAnswer } from "./model";

const STARTS = ["start", "start_ns", "time_ns", "ts", "time"];
const ENDS = ["end", "end_ns"];
const DURATIONS = ["duration", "duration_ns", "dur"];

function numberOf(value: Json | undefined): number | null {
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export interface Place {
  start: number;
  end: number;
  track: number | null;
  depth: number | null;
}

/** A time of the trace on the axis. */
function placeOf(value: Json | undefined, origin: bigint): number | null {
  if (typeof value === "bigint") return Number(value - origin);
  const number = numberOf(value);
  return number === null ? null : number - Number(origin);
}

/** How a row of this result leads to the timeline, on whose axis `origin` is at 0; null if the result has no time of start. */
export function placesOf(answer: SqlAnswer, origin: bigint): ((row: readonly Json[]) => Place | null) | null {
  const column = (names: readonly string[]): number => answer.columns.findIndex((item) => names.includes(item.name.toLowerCase()));
  const [start, end, duration, track, depth] = [column(STARTS), column(ENDS), column(DURATIONS), column(["track"]), column(["depth"])];
  if (start < 0) return null;
  return (row) => {
    const from = placeOf(row[start], origin);
    if (from === null) return null;
    const to = end >= 0 ? placeOf(row[end], origin) : duration >= 0 ? from + (numberOf(row[duration]) ?? 0) : from;
    return { start: from, end: Math.max(to ?? from, from), track: track >= 0 ? numberOf(row[track]) : null, depth: depth >= 0 ? numberOf(row[depth]) : null };
  };
}

export interface Chart {
  xName: string;
  yName: string;
  /** Bars have a label each; a line has x values. */
  kind: "bars" | "line";
  labels: string[];
  x: number[];
  y: number[];
}

const CHART_POINTS_MAX = 5000;
const CHART_BARS_MAX = 40;

/** A chart of the first column against a column of numbers; null where that says nothing. */
export function chartOf(answer: SqlAnswer, yColumn: number | null): Chart | null {
  const isNumeric = (i: number): boolean => answer.rows.some((row) => numberOf(row[i]) !== null) && answer.rows.every((row) => row[i] === null || numberOf(row[i]) !== null);
  const numeric = answer.columns.map((_column, i) => i).filter((i) => isNumeric(i));
  const y = yColumn ?? numeric.find((i) => i > 0) ?? numeric[0];
  if (y === undefined || answer.rows.length < 2 || !numeric.includes(y)) return null;
  const x = y === 0 ? null : 0;
  const xName = x === null ? "row" : (answer.columns[x]?.name ?? "");
  const yName = answer.columns[y]?.name ?? "";
  const values = answer.rows.map((row) => numberOf(row[y]) ?? 0);
  if (x !== null && !numeric.includes(x)) {
    const labels = answer.rows.slice(0, CHART_BARS_MAX).map((row) => String(row[x] ?? ""));
    return { kind: "bars", xName, yName, labels, x: [], y: values.slice(0, CHART_BARS_MAX) };
  }
  const points = answer.rows.map((row, i): [number, number] => [x === null ? i : (numberOf(row[x]) ?? 0), values[i] ?? 0]);
  const sorted = points.sort((a, b) => a[0] - b[0]).slice(0, CHART_POINTS_MAX);
  return { kind: "line", xName, yName, labels: [], x: sorted.map((point) => point[0]), y: sorted.map((point) => point[1]) };
}

/** Columns that a chart can show. */
export function chartColumns(answer: SqlAnswer): number[] {
  return answer.columns.map((_column, i) => i).filter((i) => chartOf(answer, i) !== null);
}
