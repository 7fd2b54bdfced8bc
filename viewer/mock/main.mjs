// A server with the viewer's interface and a synthetic trace: for work on the page, and as a double in its tests.
//
//   node mock/main.mjs [--port N] [--kind plain|hostile|empty|instants] [--slices N] [--reading]
//
// It prints one line with its address. `--reading` imitates a trace that is still being read.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { randomBytes } from "node:crypto";
import * as answers from "./answers.mjs";
import { makeTrace } from "./trace.mjs";

const ASSETS = new URL("../../crates/view/assets/", import.meta.url);
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const READING_MS = 1500;

function option(name, otherwise) {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? otherwise : (process.argv[at + 1] ?? otherwise);
}

const trace = makeTrace(option("kind", "plain"), Number(option("slices", 300_000)));
const token = randomBytes(16).toString("hex");
const began = Date.now();
const reading = process.argv.includes("--reading");

function progress() {
  return reading ? Math.min(1, (Date.now() - began) / READING_MS) : 1;
}

function traceAnswer(query) {
  const share = progress();
  const version = 1 + Math.floor(share * 5);
  if (query.has("after") && Number(query.get("after")) >= version) return null;
  const { range } = trace;
  const at = (part) => range.start + (range.end - range.start) * part;
  const plain = trace.kind === "plain";
  return {
    version, complete: share >= 1, progress: share, error: null,
    files: [{ index: 0, name: `/traces/${trace.kind === "hostile" ? "<b>bold</b>\u202e.xray" : "server.xray"}`, format: "xray", bytes: 48_123_456, damage: plain ? 1 : 0 }],
    unit: trace.kind === "instants" ? "seq" : "ns", ticks_per_second: null, wall_start_ns: plain ? "1700000000000000000" : null, range,
    tracks: trace.tracks.map(({ rows: _rows, fan: _fan, ...track }) => track), slices: trace.kind === "instants" ? 0 : trace.slices, instants: trace.kind === "instants" ? trace.slices : 0,
    damage: plain ? [{ file: 0, start: at(0.41), end: at(0.43), text: "byte 0x1f40: 64 bytes are damaged" }] : [],
    counters: plain ? [{ id: 0, name: "resident memory", track: null }] : [], sql: trace.kind !== "instants", sections: trace.kind === "empty" ? [] : ["memory"],
  };
}

function json(value, status = 200) {
  return { status, type: "application/json", body: JSON.stringify(value) };
}

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

async function api(path, query, request) {
  const number = (name) => Number(query.get(name));
  switch (path) {
    case "trace": {
      const answer = traceAnswer(query);
      return answer === null ? { status: 204, type: "text/plain", body: "" } : json(answer);
    }
    case "names":
      return json({ from: number("from"), names: trace.names.slice(number("from")) });
    case "tiles":
      return { status: 200, type: "application/octet-stream", body: answers.tiles(trace, number("start"), number("end"), number("px"), query.get("tracks").split(",").map(Number), 1) };
    case "slice": {
      const found = answers.slice(trace, number("track"), number("depth"), number("start"));
      return found ? json(found) : json({ error: "no slice begins there" }, 404);
    }
    case "search":
      return json(answers.search(trace, query.get("q") ?? "", number("limit") || 1000));
    case "selection":
      return json(answers.selection(trace, number("start"), number("end")));
    case "flame":
      return json(answers.flame(trace, number("start"), number("end"), query.get("merge")));
    case "counter":
      return json(answers.counter(number("start"), number("end"), number("px")));
    case "tables":
      return json(answers.TABLES);
    case "section/memory":
      return json(answers.section(trace));
    case "sql": {
      const answer = answers.sql(trace, await body(request));
      return answer ? json(answer) : json({ error: "unknown table: nowhere" }, 400);
    }
    default:
      return json({ error: `no such address: ${path}` }, 404);
  }
}

async function asset(path) {
  const name = path === "" ? "index.html" : path;
  if (!/^(assets\/)?[\w-]+\.(html|js|css|svg)$/.test(name)) return json({ error: "no such file" }, 404);
  const content = await readFile(fileURLToPath(new URL(name, ASSETS)));
  return { status: 200, type: TYPES[name.slice(name.lastIndexOf(".") + 1)], body: content };
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? "/", "http://127.0.0.1");
  let answer;
  try {
    if (!url.pathname.startsWith(`/${token}/`)) answer = json({ error: "wrong token" }, 403);
    else {
      const path = url.pathname.slice(token.length + 2);
      answer = path.startsWith("api/") ? await api(path.slice(4), url.searchParams, request) : await asset(path);
    }
  } catch (error) {
    answer = json({ error: String(error) }, 500);
  }
  response.writeHead(answer.status, { "content-type": answer.type, "content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-store" });
  response.end(answer.body);
});

server.listen(Number(option("port", 0)), "127.0.0.1", () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}/${token}/\n`);
});
