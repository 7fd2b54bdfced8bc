// What happened in the marked or visible range: by name, by thread, as a histogram, the slowest.

import { useState } from "preact/hooks";
import { getSelection } from "../api";
import { css, colorOf } from "../colors";
import { columnScale, formatCount, formatDuration, formatTime, printable, type Clock } from "../format";
import type { Hit, NameRow, Selection, ThreadRow, Trace } from "../model";
import { trackLabel } from "../rows";
import { clockOf, type Controller } from "../state/controller";
import { useStore } from "../state/store";
import { spanOf } from "../window";
import { DataTable, type Column } from "./DataTable";
import { Histogram } from "./Histogram";
import { useLoaded, useRange } from "./ranges";

type Kind = "names" | "threads" | "durations" | "slowest";
const KINDS: readonly [Kind, string][] = [["names", "By name"], ["threads", "By thread"], ["durations", "Durations"], ["slowest", "Slowest"]];

export function SelectionTab({ controller }: { controller: Controller }) {
  const [kind, setKind] = useState<Kind>("names");
  const trace = useStore(controller.store, (state) => state.trace);
  const range = useRange(controller);
  const { value, busy, error } = useLoaded(range && ((signal) => getSelection(range, "", signal)), [range, trace?.version]);
  const clock = clockOf(trace);
  if (trace === null || range === null) return <p class="empty-table">Opening the trace…</p>;
  const noun = trace.slices > 0 ? "slices" : "instants";
  return (
    <div class={busy ? "split busy" : "split"}>
      <div class="side">
        <p>
          <strong>{range.isMark ? "Marked range" : "Visible range"}</strong>
          <br />
          {clock.unit === "seq" ? `${formatCount(spanOf(range))} records` : formatDuration(spanOf(range), clock)} from {formatTime(range.start, Math.max(spanOf(range) / 1000, 1), clock)}
        </p>
        {value && <p class="numbers">{formatCount(value.count)} {noun} begin here{value.exact ? "" : " (estimated)"}<br />{value.total > 0 ? `${formatDuration(value.total, clock)} in them` : ""}</p>}
        <div class="choices" role="group" aria-label="What to show">
          {KINDS.map(([id, title]) => (
            <button type="button" key={id} aria-pressed={id === kind} onClick={() => setKind(id)}>{title}</button>
          ))}
        </div>
        {range.isMark && <button type="button" class="plain" onClick={() => controller.setMark(null)}>Remove the mark</button>}
      </div>
      <div class="main">
        {error !== null ? <p class="empty-table bad">{error}</p> : value && <Shown kind={kind} value={value} trace={trace} clock={clock} controller={controller} />}
      </div>
    </div>
  );
}

function Shown({ kind, value, trace, clock, controller }: { kind: Kind; value: Selection; trace: Trace; clock: Clock; controller: Controller }) {
  const empty = "Nothing begins in this range. Zoom out, or mark another range.";
  switch (kind) {
    case "names":
      return <DataTable caption="By name" columns={nameColumns(value, clock, controller)} rows={value.names} sort={value.total > 0 ? 2 : 1} empty={empty} go={(row) => () => controller.search(row.name)} />;
    case "threads":
      return <DataTable caption="By thread" columns={threadColumns(value, trace, clock)} rows={value.threads} sort={value.total > 0 ? 2 : 1} empty={empty} go={(row) => () => controller.screen?.scrollTo(row.track, 0)} />;
    case "durations":
      return <Histogram edges={value.edges} counts={value.counts} clock={clock} empty={empty} />;
    case "slowest":
      return <DataTable caption="Slowest" columns={slowestColumns(value, trace, clock, controller)} rows={value.slowest} sort={-1} empty={empty} go={(hit) => () => controller.goToHit(hit)} />;
  }
}

function nameColumns(value: Selection, clock: Clock, controller: Controller): Column<NameRow>[] {
  const { theme } = controller.store.get();
  const most = value.names.reduce((max, row) => Math.max(max, row.total), 0);
  const longest = value.names.reduce((max, row) => Math.max(max, row.max), 0);
  const sums = columnScale(most, clock);
  const each = columnScale(longest, clock);
  const time = (title: string, scale: typeof sums, pick: (row: NameRow) => number): Column<NameRow> => ({ title, unit: scale.name, align: "right", value: pick, show: (row) => scale.format(pick(row)) });
  const name: Column<NameRow> = {
    title: "Name",
    align: "left",
    value: (row) => row.name,
    show: (row) => <><i class="swatch" style={{ background: css(colorOf(row.name, theme)) }} /><bdi>{printable(row.name) || "(no name)"}</bdi></>,
  };
  const count: Column<NameRow> = { title: "Count", align: "right", value: (row) => row.count, show: (row) => formatCount(row.count) };
  if (most === 0) return [name, count];
  const share: Column<NameRow> = { title: "Self share", align: "left", value: (row) => row.self, show: (row) => <meter class="share" min={0} max={Math.max(1, value.names.reduce((max, item) => Math.max(max, item.self), 0))} value={row.self} /> };
  return [
    name, count, time("Total", sums, (row) => row.total), time("Self", sums, (row) => row.self), share,
    time("Mean", each, (row) => row.mean), time("Min", each, (row) => row.min), time("p50", each, (row) => row.p50),
    time("p90", each, (row) => row.p90), time("p99", each, (row) => row.p99), time("Max", each, (row) => row.max),
  ];
}

function threadColumns(value: Selection, trace: Trace, clock: Clock): Column<ThreadRow>[] {
  const labels = new Map(trace.tracks.map((track) => [track.id, `${track.processName ?? (track.process === null ? "" : `Process ${track.process}`)} ${trackLabel(track)}`.trim()]));
  const label = (row: ThreadRow): string => labels.get(row.track) ?? `Track ${row.track}`;
  const sums = columnScale(value.threads.reduce((max, row) => Math.max(max, row.total), 0), clock);
  const columns: Column<ThreadRow>[] = [
    { title: "Thread", align: "left", value: label, show: (row) => <bdi>{printable(label(row))}</bdi> },
    { title: "Count", align: "right", value: (row) => row.count, show: (row) => formatCount(row.count) },
  ];
  if (value.total === 0) return columns;
  return [
    ...columns,
    { title: "Total", unit: sums.name, align: "right", value: (row) => row.total, show: (row) => sums.format(row.total) },
    { title: "Self", unit: sums.name, align: "right", value: (row) => row.self, show: (row) => sums.format(row.self) },
  ];
}

function slowestColumns(value: Selection, trace: Trace, clock: Clock, controller: Controller): Column<Hit>[] {
  const labels = new Map(trace.tracks.map((track) => [track.id, trackLabel(track)]));
  const scale = columnScale(value.slowest.reduce((max, hit) => Math.max(max, hit.end - hit.start), 0), clock);
  const { names } = controller;
  return [
    { title: "Duration", unit: scale.name, align: "right", value: (hit) => hit.end - hit.start, show: (hit) => scale.format(hit.end - hit.start) },
    { title: "Name", align: "left", value: (hit) => names.shown(hit.name), show: (hit) => <bdi>{names.shown(hit.name)}</bdi> },
    { title: "Start", align: "right", value: (hit) => hit.start, show: (hit) => formatTime(hit.start, Math.max((hit.end - hit.start) / 100, 1), clock) },
    { title: "Thread", align: "left", value: (hit) => labels.get(hit.track) ?? "", show: (hit) => <bdi>{labels.get(hit.track) ?? `Track ${hit.track}`}</bdi> },
    { title: "Depth", align: "right", value: (hit) => hit.depth, show: (hit) => formatCount(hit.depth) },
  ];
}
