// The blocks of a format's own page (`api/section/NAME`).

import { asList, asNumber, asNumbers, asObject, asText, asTexts, optionalList, optionalNumber, optionalText, type Json, type JsonObject } from "./json";

export interface Link {
  start: number;
  end: number;
  track: number | null;
}

export interface TableBlock {
  kind: "table";
  title: string;
  columns: { name: string; align: "left" | "right" }[];
  rows: Json[][];
  links: (Link | null)[];
}

export interface CurveBlock {
  kind: "curve";
  title: string;
  x: number[];
  series: { name: string; y: number[] }[];
  logX: boolean;
  marks: { x: number; label: string }[];
}

export interface LanesBlock {
  kind: "lanes";
  title: string;
  lanes: { name: string; items: { start: number; end: number; label: string }[] }[];
}

export interface HeatBlock {
  kind: "heat";
  title: string;
  xLabel: string;
  yLabel: string;
  columns: number;
  rows: number;
  cells: number[];
  rowNames: string[];
}

export interface SourceBlock {
  kind: "source";
  title: string;
  /** What the figures of lines are. */
  columns: string[];
  /** A line of the file; without figures it is only shown for what is around it, and without a number it is a gap. */
  lines: { number: number | null; text: string; values: number[] }[];
}

/** Pictures, each with its words and a place of the timeline. */
export interface PicturesBlock {
  kind: "pictures";
  title: string;
  /** They are still being made. */
  making: boolean;
  pictures: { source: string; text: string; link: Link | null }[];
}

/** Lines of text, some of which lead to a place of the timeline. */
export interface LinesBlock {
  kind: "lines";
  title: string;
  lines: { text: string; link: Link | null }[];
}

export type Block =
  | { kind: "text"; text: string }
  | { kind: "unknown"; name: string }
  | TableBlock
  | CurveBlock
  | LanesBlock
  | HeatBlock
  | LinesBlock
  | PicturesBlock
  | SourceBlock;

export interface Section {
  title: string;
  blocks: Block[];
}

export function readSection(value: Json): Section {
  const section = asObject(value, "section");
  return { title: optionalText(section["title"]) ?? "", blocks: optionalList(section["blocks"]).map(readBlock) };
}

function readBlock(value: Json): Block {
  const block = asObject(value, "block");
  switch (block["kind"]) {
    case "text":
      return { kind: "text", text: optionalText(block["text"]) ?? "" };
    case "table":
      return readTable(block);
    case "curve":
      return readCurve(block);
    case "lanes":
      return readLanes(block);
    case "heat":
      return readHeat(block);
    case "lines":
      return readLines(block);
    case "pictures":
      return readPictures(block);
    case "source":
      return readSource(block);
    default:
      return { kind: "unknown", name: optionalText(block["kind"]) ?? "" };
  }
}

function title(block: JsonObject): string {
  return optionalText(block["title"]) ?? "";
}

function readLink(value: Json): Link | null {
  if (value === null) return null;
  const link = asObject(value, "links");
  return { start: asNumber(link["start"], "link.start"), end: asNumber(link["end"], "link.end"), track: optionalNumber(link["track"]) };
}

function readLines(block: JsonObject): LinesBlock {
  const links = optionalList(block["links"]).map(readLink);
  const lines = asTexts(block["lines"] ?? [], "lines").map((text, i) => ({ text, link: links[i] ?? null }));
  return { kind: "lines", title: title(block), lines };
}

/** The lines that contain all words, in any case; `most` of them, and how many there are. */
export function linesWith(lines: LinesBlock["lines"], words: string, most: number): { shown: LinesBlock["lines"]; count: number } {
  const wanted = words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const found = lines.filter((line) => wanted.every((word) => line.text.toLowerCase().includes(word)));
  return { shown: found.slice(0, most), count: found.length };
}

function readTable(block: JsonObject): TableBlock {
  const columns = asList(block["columns"], "table.columns").map((item) => {
    if (typeof item === "string") return { name: item, align: "left" as const };
    const column = asObject(item, "table.columns");
    return { name: optionalText(column["name"]) ?? "", align: column["align"] === "right" ? ("right" as const) : ("left" as const) };
  });
  const links = optionalList(block["links"]).map(readLink);
  const rows = asList(block["rows"], "table.rows").map((row) => asList(row, "table.rows"));
  return { kind: "table", title: title(block), columns, rows, links };
}

function readCurve(block: JsonObject): CurveBlock {
  const series = optionalList(block["series"]).map((item) => {
    const line = asObject(item, "curve.series");
    return { name: optionalText(line["name"]) ?? "", y: asNumbers(line["y"], "curve.y") };
  });
  const marks = optionalList(block["marks"]).map((item) => {
    const mark = asObject(item, "curve.marks");
    return { x: asNumber(mark["x"], "mark.x"), label: optionalText(mark["label"]) ?? "" };
  });
  return { kind: "curve", title: title(block), x: asNumbers(block["x"], "curve.x"), series, logX: block["log_x"] === true, marks };
}

function readLanes(block: JsonObject): LanesBlock {
  const lanes = optionalList(block["lanes"]).map((entry) => {
    const lane = asObject(entry, "lanes");
    const items = optionalList(lane["items"]).map((part) => {
      const item = asObject(part, "lanes.items");
      return { start: asNumber(item["start"], "item.start"), end: asNumber(item["end"], "item.end"), label: optionalText(item["label"]) ?? "" };
    });
    return { name: optionalText(lane["name"]) ?? "", items };
  });
  return { kind: "lanes", title: title(block), lanes };
}

function readHeat(block: JsonObject): HeatBlock {
  return {
    kind: "heat",
    title: title(block),
    xLabel: optionalText(block["x_label"]) ?? "",
    yLabel: optionalText(block["y_label"]) ?? "",
    columns: asNumber(block["columns"], "heat.columns"),
    rows: asNumber(block["rows"], "heat.rows"),
    cells: asNumbers(block["cells"], "heat.cells"),
    rowNames: optionalList(block["row_names"]).map((name) => asText(name, "heat.row_names")),
  };
}

/** Only pictures of the page's own server, and those that are in the answer. */
const PICTURE = /^(api\/picture\?file=\d+&frame=\d+|data:image\/png;base64,[A-Za-z0-9+/]+=*)$/;

function readPictures(block: JsonObject): PicturesBlock {
  const pictures = optionalList(block["pictures"]).flatMap((item) => {
    const picture = asObject(item, "pictures");
    const source = optionalText(picture["source"]) ?? "";
    return PICTURE.test(source) ? [{ source, text: optionalText(picture["text"]) ?? "", link: readLink(picture["link"] ?? null) }] : [];
  });
  return { kind: "pictures", title: title(block), making: block["making"] === true, pictures };
}

function readSource(block: JsonObject): SourceBlock {
  const lines = asList(block["lines"], "source.lines").map((item) => {
    const line = asObject(item, "source.lines");
    return { number: optionalNumber(line["number"]), text: optionalText(line["text"]) ?? "", values: optionalList(line["values"]).map((value) => asNumber(value, "source.values")) };
  });
  return { kind: "source", title: title(block), columns: asTexts(block["columns"], "source.columns"), lines };
}
