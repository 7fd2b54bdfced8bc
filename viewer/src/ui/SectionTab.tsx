// A format's own page, from the blocks that the server gives.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getSection } from "../api";
import { colorOf, css, GROUNDS } from "../colors";
import { formatCount, formatShortCount, printable } from "../format";
import { cellText, type Json } from "../json";
import { linesWith, type Block, type CurveBlock, type HeatBlock, type LanesBlock, type LinesBlock, type Link, type PicturesBlock, type SourceBlock, type TableBlock } from "../sections";
import type { Controller } from "../state/controller";
import { useStore } from "../state/store";
import { DataTable, type Column } from "./DataTable";
import { Plot, plotColors } from "./plot";
import { useLoaded } from "./ranges";

/** How often a page is asked for whose pictures are being made. */
const MAKING_MS = 700;

export function SectionTab({ controller, name }: { controller: Controller; name: string }) {
  const version = useStore(controller.store, (state) => state.trace?.version);
  const [turn, setTurn] = useState(0);
  const { value, busy, error } = useLoaded(() => getSection(name), [name, version, turn]);
  const making = value?.blocks.some((block) => block.kind === "pictures" && block.making) ?? false;
  useEffect(() => {
    if (!making) return undefined;
    const timer = setTimeout(() => setTurn(turn + 1), MAKING_MS);
    return () => clearTimeout(timer);
  }, [making, turn]);
  if (error !== null) return <p class="empty-table bad">{error}</p>;
  if (value === null) return <p class="empty-table">Loading…</p>;
  return (
    <article class={busy && !making ? "section busy" : "section"}>
      {value.title !== "" && <h2>{printable(value.title)}</h2>}
      {value.blocks.length === 0 && <p class="empty-table">This page has nothing to show for this trace.</p>}
      {value.blocks.map((block, i) => <BlockView key={i} block={block} controller={controller} />)}
    </article>
  );
}

export function BlockView({ block, controller }: { block: Block; controller: Controller }) {
  switch (block.kind) {
    case "text":
      return <p class="block-text">{block.text.slice(0, 5000).split("\n").map((line) => printable(line, 2000)).join("\n")}</p>;
    case "table":
      return <TableView block={block} controller={controller} />;
    case "curve":
      return <CurveView block={block} controller={controller} />;
    case "lanes":
      return <LanesView block={block} controller={controller} />;
    case "heat":
      return <HeatView block={block} controller={controller} />;
    case "lines":
      return <LinesView block={block} controller={controller} />;
    case "pictures":
      return <PicturesView block={block} controller={controller} />;
    case "source":
      return <SourceView block={block} />;
    case "unknown":
      return <p class="faint">This page has a part (“{printable(block.name, 40)}”) that this viewer does not know.</p>;
  }
}

interface LinkedRow {
  cells: Json[];
  link: Link | null;
}

function TableView({ block, controller }: { block: TableBlock; controller: Controller }) {
  const rows = useMemo(() => block.rows.map((cells, i): LinkedRow => ({ cells, link: block.links[i] ?? null })), [block]);
  const columns = block.columns.map((column, i): Column<LinkedRow> => ({
    title: printable(column.name, 60),
    align: column.align,
    value: (row) => sortable(row.cells[i]),
    show: (row) => <bdi>{shown(row.cells[i])}</bdi>,
  }));
  const go = ({ link }: LinkedRow): (() => void) | null => (link === null ? null : () => controller.goTo(link, link.track));
  return (
    <section class="block">
      {block.title !== "" && <h3>{printable(block.title)}</h3>}
      <DataTable caption={block.title} columns={columns} rows={rows} sort={-1} go={go} empty="No rows." />
    </section>
  );
}

function sortable(cell: Json | undefined): number | bigint | string | null {
  return typeof cell === "number" || typeof cell === "bigint" ? cell : cell === null || cell === undefined ? null : cellText(cell);
}

function shown(cell: Json | undefined): string {
  if (typeof cell === "number" && !Number.isInteger(cell)) return String(Number(cell.toPrecision(6)));
  if (typeof cell === "number" || typeof cell === "bigint") return formatCount(cell);
  return printable(cellText(cell), 500);
}

function CurveView({ block, controller }: { block: CurveBlock; controller: Controller }) {
  useStore(controller.store, (state) => state.theme);
  const colors = plotColors();
  const data = useMemo(() => [block.x, ...block.series.map((item) => item.y)], [block]);
  const series = block.series.map((item, i) => ({ label: printable(item.name, 40), color: colors.lines[i % colors.lines.length] ?? colors.accent }));
  return (
    <section class="block">
      <h3>{printable(block.title)}</h3>
      <Plot data={data} series={series} xLabel="" logX={block.logX} xText={formatShortCount} marks={block.marks} height={220} ink={colors.ink} grid={colors.grid} />
    </section>
  );
}

const LANES_MAX = 200;
const LANE_ITEMS_MAX = 2000;

function LanesView({ block, controller }: { block: LanesBlock; controller: Controller }) {
  const theme = useStore(controller.store, (state) => state.theme);
  const items = block.lanes.flatMap((lane) => lane.items);
  const start = items.reduce((min, item) => Math.min(min, item.start), Number.POSITIVE_INFINITY);
  const end = items.reduce((max, item) => Math.max(max, item.end), start + 1);
  return (
    <section class="block">
      <h3>{printable(block.title)}</h3>
      <div class="lanes">
        {block.lanes.slice(0, LANES_MAX).map((lane, i) => (
          <div class="lane" key={i}>
            <bdi class="lane-name">{printable(lane.name, 60)}</bdi>
            <div class="lane-track">
              {lane.items.slice(0, LANE_ITEMS_MAX).map((item, j) => {
                const style = { left: `${((item.start - start) / (end - start)) * 100}%`, width: `max(2px, ${((item.end - item.start) / (end - start)) * 100}%)`, background: css(colorOf(item.label, theme)) };
                return <button type="button" key={j} style={style} title={printable(item.label, 200)} aria-label={printable(item.label, 200)} onClick={() => controller.goTo(item)}>{printable(item.label, 40)}</button>;
              })}
            </div>
          </div>
        ))}
      </div>
    </section>
  );
}

/** Larger maps are drawn from their first part only: the server sends what fits a screen. */
const HEAT_CELLS_MAX = 4_000_000;

function HeatView({ block, controller }: { block: HeatBlock; controller: Controller }) {
  const theme = useStore(controller.store, (state) => state.theme);
  const canvas = useRef<HTMLCanvasElement>(null);
  const most = useMemo(() => block.cells.reduce((max, cell) => Math.max(max, cell), 0), [block]);
  useEffect(() => {
    if (canvas.current) drawHeat(canvas.current, block, most, GROUNDS[theme].background);
  }, [block, theme]);
  return (
    <section class="block">
      <h3>{printable(block.title)}</h3>
      <div class="heat">
        <ol class="heat-names" aria-label={block.yLabel}>{block.rowNames.slice(0, 100).map((name, i) => <li key={i}><bdi title={printable(name, 300)}>{printable(name, 60)}</bdi></li>)}</ol>
        <canvas ref={canvas} role="img" aria-label={`${block.title}: ${block.yLabel} by ${block.xLabel}, at most ${formatCount(most)}`} style={{ height: `${Math.max(120, Math.min(block.rows, 100) * 18)}px` }} />
      </div>
      <p class="faint">{printable(block.xLabel)}; darkest: {formatCount(most)}</p>
    </section>
  );
}

function drawHeat(canvas: HTMLCanvasElement, block: HeatBlock, most: number, background: number): void {
  const { columns, rows } = block;
  if (columns <= 0 || rows <= 0 || columns * rows > HEAT_CELLS_MAX) return;
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  if (context === null) return;
  const image = context.createImageData(columns, rows);
  const base = [background & 255, (background >> 8) & 255, (background >> 16) & 255];
  const full = [214, 96, 39];
  for (let i = 0; i < columns * rows; i++) {
    const value = block.cells[i] ?? 0;
    const share = value > 0 && most > 0 ? 0.15 + 0.85 * (Math.log1p(value) / Math.log1p(most)) : 0;
    for (let c = 0; c < 3; c++) image.data[i * 4 + c] = (base[c] as number) * (1 - share) + (full[c] as number) * share;
    image.data[i * 4 + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** Lines in the page at a time. */
const LINES_SHOWN = 2000;

function LinesView({ block, controller }: { block: LinesBlock; controller: Controller }) {
  const [words, setWords] = useState("");
  const { shown, count } = useMemo(() => linesWith(block.lines, words, LINES_SHOWN), [block, words]);
  return (
    <section class="block">
      {block.title !== "" && <h3>{printable(block.title)}</h3>}
      {block.lines.length > 20 && <input type="search" class="lines-filter" value={words} placeholder="Only lines with …" aria-label="Only lines with these words" onInput={(event) => setWords(event.currentTarget.value)} />}
      <ol class="lines">
        {shown.map(({ text, link }, i) => (
          <li key={i}>{link === null ? <bdi>{printable(text, 2000)}</bdi> : <button type="button" class="plain" title="Show on the timeline" onClick={() => controller.goTo(link, link.track)}><bdi>{printable(text, 2000)}</bdi></button>}</li>
        ))}
      </ol>
      {count > shown.length && <p class="faint">{formatCount(count - shown.length)} more lines: filter them to see others.</p>}
      {count === 0 && <p class="empty-table">No line has these words.</p>}
    </section>
  );
}

function PicturesView({ block, controller }: { block: PicturesBlock; controller: Controller }) {
  return (
    <section class="block">
      <h3>{printable(block.title)}</h3>
      {block.making && <p class="faint" role="status">The trace is being replayed for its pictures…</p>}
      <ol class="pictures">
        {block.pictures.map(({ source, text, link }) => (
          <li key={source}>
            <button type="button" class="plain" disabled={link === null} title={link === null ? printable(text, 100) : "Show on the timeline"} onClick={() => link !== null && controller.goTo(link, link.track)}>
              <img src={source} alt={printable(text, 100)} loading="lazy" />
              <bdi>{printable(text, 100)}</bdi>
            </button>
          </li>
        ))}
      </ol>
    </section>
  );
}

const SOURCE_LINES_MAX = 5000;

function SourceView({ block }: { block: SourceBlock }) {
  const lines = block.lines.slice(0, SOURCE_LINES_MAX);
  const most = block.columns.map((_, i) => lines.reduce((max, line) => Math.max(max, line.values[i] ?? 0), 0));
  // How much of the worst line's figure a line has.
  const shade = (value: number, i: number): string => `--share: ${Math.round((value / Math.max(1, most[i] ?? 0)) * 100)}%`;
  return (
    <section class="block">
      <h3>{printable(block.title)}</h3>
      <table class="source">
        <thead>
          <tr>
            {block.columns.map((name, i) => <th key={i} scope="col" class="right">{printable(name, 40)}</th>)}
            <th scope="col" class="right">line</th>
            <th scope="col" class="left">source</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line, at) => (
            <tr key={at} class={line.number === null ? "gap" : line.values.length > 0 ? "counted" : ""}>
              {block.columns.map((_, i) => {
                const value = line.values[i];
                return value === undefined ? <td key={i} /> : <td key={i} class="right figure" style={shade(value, i)}>{formatCount(value)}</td>;
              })}
              <td class="right faint">{line.number ?? "⋯"}</td>
              <td><code>{printable(line.text, 1000).replaceAll("\\u{9}", "    ")}</code></td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
