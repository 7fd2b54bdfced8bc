// A walk through a trace, as long as wanted. It measures how long moves take, and the memory of the tab and of the server.
// Nothing watches the browser meanwhile: for whoever does, it keeps all answers.
//
//   ANYTRACE_COMMAND=target/release/anytrace node viewer/tests/browser/walk.mjs TRACE MINUTES

import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { ARGUMENTS, BROWSER, PROGRAM, ROOT, start } from "./common.mjs";

/** Bytes of the tab's own memory after the walk, of the server's at any time, and the 95th percentile of a move, at most. */
const TAB_BYTES_MAX = 300e6;
const SERVER_BYTES_MAX = 300e6;
const MOVE_P95_MS = 50;
const SAMPLE_MS = 1000;
const END_MS = 30_000;
const REST_MS = 5000;

/** The memory that a process shares with nobody, in bytes: files it has mapped are the system's cache. */
function ownBytes(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const of = (field) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) * 1024;
    return of("RssAnon") + of("VmSwap");
  } catch {
    return 0; // It has ended.
  }
}

/** The tabs of the browser whose settings are in a folder. */
function tabsOf(folder) {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return words.includes("--type=renderer") && words.includes(folder);
    } catch {
      return false;
    }
  });
}

/** The page of the program with the walker beside it. */
function pageFolder(minutes, seed) {
  const folder = mkdtempSync(join(tmpdir(), "anytrace-walk-"));
  cpSync(join(ROOT, "crates/view/assets"), folder, { recursive: true });
  cpSync(fileURLToPath(new URL("walker.js", import.meta.url)), join(folder, "assets/walker.js"));
  const index = join(folder, "index.html");
  const tag = `<script type="module" src="./assets/walker.js?minutes=${minutes}&amp;seed=${seed}"></script>`;
  writeFileSync(index, readFileSync(index, "utf8").replace("</head>", `${tag}</head>`));
  return folder;
}

/** A browser with one tab, whose port is in its first line of complaints. */
function browse(url, folder) {
  const browser = spawn(BROWSER, ["--headless", ...ARGUMENTS, "--remote-debugging-port=0", `--user-data-dir=${folder}`, "--window-size=1280,800", url], { stdio: ["ignore", "ignore", "pipe"] });
  process.on("exit", () => browser.kill("SIGKILL"));
  return new Promise((resolve, reject) => {
    let said = "";
    browser.on("error", reject);
    browser.on("exit", (code) => reject(new Error(`the browser ended with ${code}`)));
    browser.stderr.on("data", (part) => {
      said += part;
      const found = /DevTools listening on (ws:\S+)/.exec(said);
      if (found) resolve({ endpoint: found[1], stop: () => browser.removeAllListeners("exit") && browser.kill("SIGKILL") && new Promise((done) => browser.on("exit", done)) });
    });
  });
}

/** Removes a folder in which processes that are being killed may still write. */
function remove(folder) {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  } catch {
    console.error(`${folder} could not be removed`);
  }
}

/** Walks for so long; returns what was measured. */
export async function walk(file, minutes, seed = 1) {
  const [page, settings] = [pageFolder(minutes, seed), mkdtempSync(join(tmpdir(), "anytrace-browser-"))];
  const server = await start(PROGRAM, ["view", "--no-open", "--viewer-dir", page, file]);
  const browser = await browse(server.url, settings);
  const end = performance.now() + minutes * 60_000 + 2000;
  let [tab, serverBytes] = [0, 0];
  while (performance.now() < end) {
    await new Promise((done) => setTimeout(done, SAMPLE_MS));
    tab = Math.max(tab, ...tabsOf(settings).map(ownBytes));
    serverBytes = Math.max(serverBytes, ownBytes(server.pid));
  }
  // What is left of it: a browser collects garbage when it has time.
  await new Promise((done) => setTimeout(done, REST_MS));
  const rest = Math.max(...tabsOf(settings).map(ownBytes));
  const watched = await chromium.connectOverCDP(browser.endpoint);
  const shown = watched.contexts()[0].pages().find((one) => one.url().startsWith(server.url));
  await shown.waitForFunction(() => window.__walked !== null, null, { timeout: END_MS });
  const found = await shown.evaluate(() => window.__walked);
  await browser.stop();
  server.stop();
  [page, settings].forEach(remove);
  const times = found.times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  const faults = [...found.faults, ...(found.error === null ? [] : [found.error])];
  return { steps: found.steps, moves: times.length, median: at(0.5), p95: at(0.95), tab: rest, tabMost: tab, server: serverBytes, faults };
}

export const words = (found) =>
  `${found.steps} steps, ${found.moves} moves: median ${found.median.toFixed(1)} ms, p95 ${found.p95.toFixed(1)} ms; tab ${(found.tab / 1e6).toFixed(0)} MB (${(found.tabMost / 1e6).toFixed(0)} at most), server ${(found.server / 1e6).toFixed(0)} MB at most`;

if (process.argv[1]?.endsWith("walk.mjs")) {
  const [file, minutes] = process.argv.slice(2);
  const found = await walk(file, Number(minutes));
  console.log(words(found));
  const fails = [
    ...found.faults,
    ...(found.tab > TAB_BYTES_MAX ? ["the tab takes too much memory"] : []),
    ...(found.server > SERVER_BYTES_MAX ? ["the server takes too much memory"] : []),
    ...(found.p95 > MOVE_P95_MS ? ["moves take too long"] : []),
  ];
  fails.forEach((text) => console.error(`failed: ${text}`));
  process.exit(fails.length === 0 ? 0 : 1);
}
