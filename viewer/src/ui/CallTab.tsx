// The selected slice: times, stack, callees, attributes.

import { useState } from "preact/hooks";
import { getCall, getExplanation } from "../api";
import { formatCount, formatDuration, formatPercent, formatTime, formatWall, printable, type Clock } from "../format";
import { cellText } from "../json";
import type { ArrowEnd, Call, Trace } from "../model";
import { trackLabel } from "../rows";
import { clockOf, type Controller } from "../state/controller";
import { useStore } from "../state/store";
import { useLoaded } from "./ranges";
import { BlockView } from "./SectionTab";

const FLAG_TEXTS: Record<string, string> = {
  open: "still open at the end of the trace",
  deduced: "its end is deduced from what follows",
  "deduced-end": "its end is deduced from what follows",
  before: "began before what was read",
  instant: "an instant",
};

export function CallTab({ controller }: { controller: Controller }) {
  const slice = useStore(controller.store, (state) => state.slice);
  const trace = useStore(controller.store, (state) => state.trace);
  const { value, error } = useLoaded(slice && (() => getCall(slice.track, slice.depth, slice.start)), [slice, trace?.version]);
  if (slice === null) return <p class="empty-table">Click a slice on the timeline to see it here. “.” and “,” step along its row, “[” and “]” to its caller and callee.</p>;
  if (error !== null) return <p class="empty-table bad">{error}</p>;
  if (value === null || trace === null) return <p class="empty-table">Loading…</p>;
  const clock = clockOf(trace);
  return (
    <div class="call">
      <Facts call={value} trace={trace} clock={clock} />
      <Stack call={value} clock={clock} controller={controller} />
      <Callees call={value} clock={clock} />
      {value.arrows.length > 0 && <ArrowList call={value} clock={clock} trace={trace} controller={controller} />}
      {value.attributes !== null && <Attributes call={value} />}
      {value.explanations.map((one) => <Explanation key={`${one.name} ${value.track} ${one.at}`} {...one} track={value.track} controller={controller} />)}
    </div>
  );
}

function Facts({ call, trace, clock }: { call: Call; trace: Trace; clock: Clock }) {
  const track = trace.tracks.find((item) => item.id === call.track);
  const span = call.end - call.start;
  const step = Math.max(span / 100, 1);
  const wall = formatWall(call.start, clock);
  const rows: [string, string | null][] = [
    ["Start", formatTime(call.start, step, clock)],
    ["Wall clock", wall],
    ["Duration", call.flags.includes("instant") ? null : formatDuration(span, clock)],
    ["Self", call.self === null || call.flags.includes("instant") ? null : `${formatDuration(call.self, clock)} (${formatPercent(call.self / Math.max(span, 1e-9))})`],
    ["Thread", track ? trackLabel(track) : null],
    ["Process", track?.processName ?? (track?.process == null ? null : String(track.process))],
    ["Depth", formatCount(call.depth)],
    ["Source", call.file === null ? null : `${printable(call.file)}${call.line === null ? "" : `:${call.line}`}`],
    ["Note", call.flags.length === 0 ? null : call.flags.map((flag) => FLAG_TEXTS[flag] ?? flag).join(", ")],
  ];
  return (
    <section>
      <h3><bdi>{printable(call.name, 1000) || "(no name)"}</bdi></h3>
      <dl class="facts">
        {rows.map(([title, text]) => text !== null && <div key={title}><dt>{title}</dt><dd><bdi>{text}</bdi></dd></div>)}
      </dl>
    </section>
  );
}

function Stack({ call, clock, controller }: { call: Call; clock: Clock; controller: Controller }) {
  if (call.stack.length === 0 && call.flags.includes("instant")) return null;
  return (
    <section>
      <h4>Stack, innermost first</h4>
      <ol class="stack">
        <li class="current"><bdi>{printable(call.name)}</bdi><span>{formatDuration(call.end - call.start, clock)}</span></li>
        {[...call.stack].filter((frame) => frame.depth !== call.depth).sort((a, b) => b.depth - a.depth).map((frame) => (
          <li key={frame.depth}>
            <button type="button" class="plain" onClick={() => controller.goToHit({ ...frame, track: call.track, name: 0 })} title="Show on the timeline"><bdi>{printable(frame.name)}</bdi></button>
            <span>{formatDuration(frame.end - frame.start, clock)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Callees({ call, clock }: { call: Call; clock: Clock }) {
  const span = Math.max(call.end - call.start, 1e-9);
  if (call.flags.includes("instant")) return null;
  if (call.children.length === 0) return <section><h4>Calls</h4><p class="faint">It calls nothing that was recorded.</p></section>;
  return (
    <section>
      <h4>Calls</h4>
      <table class="data">
        <thead><tr><th scope="col">Name</th><th scope="col" class="right">Count</th><th scope="col" class="right">Total</th><th scope="col" class="right">Share</th></tr></thead>
        <tbody>
          {call.children.slice(0, 200).map((child) => (
            <tr key={child.name}><td><bdi>{printable(child.name)}</bdi></td><td class="right">{formatCount(child.count)}</td><td class="right">{formatDuration(child.total, clock)}</td><td class="right">{formatPercent(child.total / span)}</td></tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Where arrows lead from here, and where they come from. */
function ArrowList({ call, clock, trace, controller }: { call: Call; clock: Clock; trace: Trace; controller: Controller }) {
  const isHere = (end: ArrowEnd): boolean => end.track === call.track && end.depth === call.depth && end.start === call.start;
  return (
    <section>
      <h4>Arrows</h4>
      <ol class="stack">
        {call.arrows.map((arrow, i) => {
          const leaves = isHere(arrow.from);
          const other = leaves ? arrow.to : arrow.from;
          const track = trace.tracks.find((item) => item.id === other.track);
          const text = `${leaves ? "to" : "from"} ${track ? trackLabel(track) : "another track"}, depth ${other.depth}`;
          return (
            <li key={i}>
              <button type="button" class="plain" onClick={() => controller.goToHit({ ...other, name: 0 })} title="Show on the timeline"><bdi>{text}</bdi></button>
              <span>{formatDuration(arrow.to.at - arrow.from.at, clock)} {leaves ? "later" : "before"}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** What the format explains about this slice, on request: it may take as long as reading the trace. */
function Explanation({ name, title, at, track, controller }: { name: string; title: string; at: string; track: number; controller: Controller }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="explanation">
      <h4><button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{printable(title)}</button></h4>
      {isOpen && <Explained name={name} at={at} track={track} controller={controller} />}
    </section>
  );
}

function Explained({ name, at, track, controller }: { name: string; at: string; track: number; controller: Controller }) {
  const { value, error } = useLoaded(() => getExplanation(name, track, at), [name, track, at]);
  if (error !== null) return <p class="empty-table bad">{error}</p>;
  if (value === null) return <p class="empty-table">Reading the trace…</p>;
  return <>{value.blocks.map((block, i) => <BlockView key={i} block={block} controller={controller} />)}</>;
}

function Attributes({ call }: { call: Call }) {
  const entries = Object.entries(call.attributes ?? {});
  if (entries.length === 0) return null;
  return (
    <section>
      <h4>Attributes</h4>
      <dl class="facts">
        {entries.slice(0, 500).map(([key, value]) => <div key={key}><dt><bdi>{printable(key, 80)}</bdi></dt><dd><bdi>{printable(cellText(value), 2000)}</bdi></dd></div>)}
      </dl>
    </section>
  );
}
