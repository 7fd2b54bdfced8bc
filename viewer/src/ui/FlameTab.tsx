// The flame graph of the marked or visible range: calls of the same stack merged, largest at the left or in the order
// of time.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getFlame } from "../api";
import { colorOf, css, GROUNDS, type Theme } from "../colors";
import { layFlame, pathTo, type Box } from "../flame";
import { formatCount, formatDuration, formatPercent, printable, type Clock } from "../format";
import type { FlameNode } from "../model";
import { clockOf, type Controller } from "../state/controller";
import { useStore } from "../state/store";
import { useLoaded, useRange } from "./ranges";

const ROW = 19;

export function FlameTab({ controller }: { controller: Controller }) {
  const [merge, setMerge] = useState<"heavy" | "time">("heavy");
  const trace = useStore(controller.store, (state) => state.trace);
  const theme = useStore(controller.store, (state) => state.theme);
  const range = useRange(controller);
  const { value: answer, busy, error } = useLoaded(range && ((signal) => getFlame(range, "", merge, signal)), [range, merge, trace?.version]);
  if (error !== null) return <p class="empty-table bad">{error}</p>;
  const value = answer?.root ?? null;
  if (answer === null || value === null || range === null) return <p class="empty-table">Counting stacks…</p>;
  const clock = clockOf(trace);
  return (
    <div class={busy ? "split busy" : "split"}>
      <div class="side">
        <p><strong>{range.isMark ? "Marked range" : "Visible range"}</strong><br />{value.total > 0 ? `${formatDuration(value.total, clock)} in ${formatCount(value.count)} calls` : "no calls"}</p>
        <div class="choices" role="group" aria-label="Order">
          <button type="button" aria-pressed={merge === "heavy"} onClick={() => setMerge("heavy")}>Left heavy</button>
          <button type="button" aria-pressed={merge === "time"} onClick={() => setMerge("time")}>In time order</button>
        </div>
        {answer.leftOut > 0 && <p class="faint">There are too many different stacks: {formatCount(answer.leftOut)} calls are counted in their callers only.</p>}
        <p class="faint">Click a box to widen it, Esc to go back. Arrow keys walk.</p>
      </div>
      <div class="main">
        {value.total > 0 ? <Flame root={value} clock={clock} theme={theme} search={(name) => controller.search(name)} /> : <p class="empty-table">Nothing runs in this range. Zoom out, or mark another range.</p>}
      </div>
    </div>
  );
}

interface FlameProps {
  root: FlameNode;
  clock: Clock;
  theme: Theme;
  search: (name: string) => void;
}

function Flame({ root, clock, theme, search }: FlameProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [top, setTop] = useState<{ node: FlameNode; path: FlameNode[] }>({ node: root, path: [] });
  const [chosen, setChosen] = useState<Box | null>(null);
  useEffect(() => {
    setTop({ node: root, path: [] });
    setChosen(null);
  }, [root]);
  const boxes = useMemo(() => layFlame(top.node, top.path), [top]);
  const depth = boxes.reduce((max, box) => Math.max(max, box.depth), 0) + 1;
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = canvas.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current) drawFlame(canvas.current, boxes, depth, chosen, theme);
  }, [boxes, depth, chosen, theme, width]);
  const at = (event: MouseEvent): Box | null => {
    const element = canvas.current;
    if (element === null) return null;
    const box = element.getBoundingClientRect();
    const x = (event.clientX - box.left) / Math.max(box.width, 1);
    const row = Math.floor((event.clientY - box.top) / ROW);
    return boxes.find((item) => item.depth === row && item.from <= x && x < item.to) ?? null;
  };
  const open = (box: Box | null): void => {
    if (box !== null) setTop({ node: box.node, path: pathTo(box) });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = walk(event.key, chosen, boxes);
    if (next !== null) setChosen(next);
    else if (event.key === "Enter") open(chosen);
    else if (event.key === "Escape" && top.path.length > 0) setTop({ node: root, path: [] });
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="flame">
      <canvas
        ref={canvas} style={{ height: `${depth * ROW}px` }} tabIndex={0} data-arrows="" role="application" aria-label="Flame graph" aria-describedby="flame-chosen"
        onMouseMove={(event) => setChosen(at(event))} onClick={(event) => open(at(event))} onDblClick={(event) => { const box = at(event); if (box) search(box.node.name); }} onKeyDown={onKeyDown}
      />
      <p class="flame-chosen" id="flame-chosen" aria-live="polite"><bdi>{chosen ? describe(chosen, root, clock) : `${formatCount(boxes.length)} stacks`}</bdi></p>
    </div>
  );
}

function describe(box: Box, root: FlameNode, clock: Clock): string {
  const { node } = box;
  const share = formatPercent(node.total / Math.max(root.total, 1e-12));
  return `${printable(node.name)}: ${formatDuration(node.total, clock)} (${share}), itself ${formatDuration(node.self, clock)}, ${formatCount(node.count)} calls`;
}

function walk(key: string, chosen: Box | null, boxes: readonly Box[]): Box | null {
  if (!key.startsWith("Arrow")) return null;
  if (chosen === null) return boxes[0] ?? null;
  if (key === "ArrowUp") return chosen.parent;
  if (key === "ArrowDown") return boxes.find((box) => box.parent === chosen) ?? chosen;
  const row = boxes.filter((box) => box.depth === chosen.depth);
  return row[row.indexOf(chosen) + (key === "ArrowRight" ? 1 : -1)] ?? chosen;
}

function drawFlame(canvas: HTMLCanvasElement, boxes: readonly Box[], depth: number, chosen: Box | null, theme: Theme): void {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(depth * ROW * ratio);
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.font = `${11 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
  context.textBaseline = "middle";
  for (const box of boxes) {
    const x = box.from * canvas.width;
    const width = Math.max(1, (box.to - box.from) * canvas.width - ratio);
    const y = box.depth * ROW * ratio;
    context.fillStyle = box.depth === 0 ? css(GROUNDS[theme].unnamed) : css(colorOf(box.node.name, theme));
    context.fillRect(x, y, width, (ROW - 1) * ratio);
    if (box === chosen) {
      context.strokeStyle = theme === "dark" ? "#ffffff" : "#000000";
      context.lineWidth = 2 * ratio;
      context.strokeRect(x + ratio, y + ratio, width - 2 * ratio, (ROW - 3) * ratio);
    }
    const characters = Math.floor((width / ratio - 8) / 6.3);
    if (characters < 3) continue;
    const name = printable(box.node.name) || "(no name)";
    context.fillStyle = GROUNDS[theme].text;
    context.fillText(name.length > characters ? `${name.slice(0, characters - 1)}…` : name, x + 4 * ratio, y + (ROW / 2) * ratio, width - 6 * ratio);
  }
}
