// Requests to the server. Addresses are relative to the page's own, whose path begins with the token.

import { formatBytes } from "./format";
import { optionalNumber, optionalText, asObject, asTexts, parseJson, type Json } from "./json";
import {
  readArrows, readCall, readCounter, readFlame, readSearch, readSelection, readSql, readTables, readTrace,
  type Arrow, type Call, type CounterSeries, type FlameNode, type Range, type SearchAnswer, type Selection, type SqlAnswer, type SqlTable, type Trace,
} from "./model";
import { Picture } from "./tiles";
import { readSection, type Section } from "./sections";

/** What the server refused, in its own words. */
export class ServerError extends Error {
  constructor(readonly status: number, words: string) {
    super(words);
  }
}

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { cache: "no-store", ...init });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ServerError(0, "The server does not answer. Is `anytrace view` still running?");
  }
  if (response.ok) return response;
  throw new ServerError(response.status, await words(response));
}

async function words(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  try {
    const said = optionalText(asObject(parseJson(text), "error")["error"]);
    if (said !== null) return said;
  } catch {
    // Not JSON: the status has to do.
  }
  if (response.status === 401 || response.status === 403 || response.status === 404) {
    return "The server refused this address. Its token is valid only for one run of `anytrace view`: open the address that the command printed.";
  }
  return `The server answered with status ${response.status}.`;
}

async function json(path: string, init: RequestInit = {}): Promise<Json> {
  const response = await ask(path, init);
  return parseJson(await response.text());
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The words of any error, for a person. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function query(parameters: Record<string, string | number | null | undefined>): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") parts.set(name, String(value));
  }
  return parts.toString();
}

let offsets = "";

/** By how much each file is moved on the axis, for all requests from now on. */
export function setOffsets(moved: readonly number[]): void {
  offsets = moved.some((offset) => offset !== 0) ? moved.join(",") : "";
}

/** The address of an answer that depends on where the files lie. */
function placed(name: string, parameters: Record<string, string | number | null | undefined>): string {
  const text = query({ ...parameters, offsets });
  return text === "" ? `api/${name}` : `api/${name}?${text}`;
}

/** The bytes of an answer, as long as they are not more than `most`. */
export async function loadBytes(path: string, most: number, signal: AbortSignal): Promise<ArrayBuffer> {
  const response = await ask(path, { signal });
  const length = Number(response.headers.get("content-length") ?? 0);
  if (length <= most) return response.arrayBuffer();
  await response.body?.cancel();
  throw new ServerError(0, `The window is too large: ${formatBytes(length)}, and at most ${formatBytes(most)} can be opened. Zoom in, or mark a shorter range.`);
}

/** The trace, or null if nothing changed since `after`. */
export async function getTrace(after: number | null): Promise<Trace | null> {
  const response = await ask(placed("trace", { after }));
  return response.status === 204 ? null : readTrace(parseJson(await response.text()));
}

export async function getNames(from: number): Promise<string[]> {
  return asTexts(asObject(await json(`api/names?from=${from}`), "names")["names"], "names");
}

export async function getTiles(range: Range, px: number, tracks: readonly number[], signal?: AbortSignal): Promise<Picture> {
  const response = await ask(placed("tiles", { ...range, px, tracks: tracks.join(",") }), signal ? { signal } : {});
  return new Picture(await response.arrayBuffer());
}

export async function getCall(track: number, depth: number, start: number): Promise<Call> {
  return readCall(await json(placed("slice", { track, depth, start })));
}

export async function getSearch(q: string, signal: AbortSignal): Promise<SearchAnswer> {
  return readSearch(await json(placed("search", { q, limit: 1000 }), { signal }));
}

export async function getSelection(range: Range, tracks: string, signal: AbortSignal): Promise<Selection> {
  return readSelection(await json(placed("selection", { ...range, tracks }), { signal }));
}

/** A flame graph, and how many slices it has without a box of their own. */
export interface Flame {
  root: FlameNode;
  leftOut: number;
}

export async function getFlame(range: Range, tracks: string, merge: "heavy" | "time", signal: AbortSignal): Promise<Flame> {
  const answer = asObject(await json(placed("flame", { ...range, tracks, merge }), { signal }), "flame");
  return { root: readFlame(answer["root"] ?? null), leftOut: optionalNumber(answer["left_out"]) ?? 0 };
}

export async function getCounter(id: number, range: Range, px: number): Promise<CounterSeries> {
  return readCounter(await json(placed("counter", { id, ...range, px })));
}

/** The arrows of a window; none where there are more than `limit`. */
export async function getArrows(range: Range, limit: number): Promise<Arrow[]> {
  return readArrows(asObject(await json(placed("arrows", { start: range.start, end: range.end, limit })), "arrows")["arrows"]);
}

/** The arrows that begin or end in a slice. */
export async function getArrowsOf({ track, depth, start }: { track: number; depth: number; start: number }): Promise<Arrow[]> {
  return readArrows(asObject(await json(placed("arrows", { track, depth, start })), "arrows")["arrows"]);
}

export async function getSection(name: string): Promise<Section> {
  return readSection(await json(placed(`section/${encodeURIComponent(name)}`, {})));
}

/** What a format explains about a slice. */
export async function getExplanation(name: string, track: number, at: string): Promise<Section> {
  return readSection(await json(placed("explain", { name, track, at })));
}

export async function getTables(): Promise<SqlTable[]> {
  return readTables(await json("api/tables"));
}

export async function runSql(text: string, signal: AbortSignal): Promise<SqlAnswer> {
  return readSql(await json("api/sql", { method: "POST", body: text, headers: { "content-type": "text/plain" }, signal }));
}

export function exportPath(form: string, range: Range): string {
  return placed("export", { form, ...range });
}
