// A walk through a trace, as long as wanted: keys, wheel, clicks, marks, tabs, search, in an order drawn from a seed. It
// measures how long moves take, and the memory of the tab and of the server.
//
//   ANYTRACE_COMMAND=target/release/anytrace node viewer/tests/browser/walk.mjs TRACE MINUTES

import { readFileSync } from "node:fs";
import { close, launch, open, PROGRAM, settled, start } from "./common.mjs";

/** Bytes of the tab's own memory and of the server's, and the 95th percentile of a move, at most. */
const TAB_BYTES_MAX = 300e6;
const SERVER_BYTES_MAX = 300e6;
const MOVE_P95_MS = 50;
const SAMPLE_MS = 5000;
const TABS = ["Selection", "Flame graph", "Call", "Summary", "Check"];

/** A line of a process' status, in bytes. */
function memory(pid, field) {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return found === null ? 0 : Number(found[1]) * 1024;
}

/** The memory of the largest tab that nobody else has. */
async function tabBytes(session) {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const tabs = processInfo.filter((one) => one.type === "renderer").map((one) => memory(one.id, "RssAnon") + memory(one.id, "VmSwap"));
  return Math.max(...tabs);
}

function stepsOf(page, random) {
  const press = (name) => async () => {
    const before = await page.evaluate(() => window.__anytrace.state().frames);
    const taken = await page.evaluate(async ([name, before]) => {
      const frame = () => new Promise((done) => requestAnimationFrame(done));
      const from = performance.now();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
      while (window.__anytrace.state().frames === before && performance.now() - from < 1000) await frame();
      return performance.now() - from;
    }, [name, before]);
    return taken;
  };
  const at = () => [260 + random() * 960, 130 + random() * 260];
  const moves = ["w", "w", "s", "a", "d", "a", "d"].map(press);
  const others = [
    async () => page.mouse.click(...at()),
    async () => { await page.mouse.move(...at()); await page.mouse.wheel(0, (random() - 0.5) * 600); },
    async () => { await page.keyboard.down("Shift"); await page.mouse.move(...at()); await page.mouse.down(); await page.mouse.move(...at(), { steps: 4 }); await page.mouse.up(); await page.keyboard.up("Shift"); },
    async () => page.getByRole("tab", { name: TABS[Math.floor(random() * TABS.length)], exact: true }).click(),
    async () => { await page.keyboard.press("/"); await page.keyboard.type(String.fromCharCode(97 + Math.floor(random() * 26))); await page.keyboard.press("Enter"); await page.waitForTimeout(200); await page.keyboard.press("Escape"); },
    async () => page.keyboard.press("f"),
    async () => page.keyboard.press("Escape"),
  ];
  return () => (random() < 0.8 ? { timed: true, run: moves[Math.floor(random() * moves.length)] } : { timed: false, run: others[Math.floor(random() * others.length)] });
}

/** Walks for so long; returns what was measured. */
export async function walk(browser, file, minutes, seed = 1) {
  let state = seed;
  const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  const server = await start(PROGRAM, ["view", "--no-open", file]);
  const { page, faults } = await open(browser, server.url);
  const session = await browser.newBrowserCDPSession();
  const next = stepsOf(page, random);
  const [times, end] = [[], performance.now() + minutes * 60_000];
  let [steps, sampled, tab, serverBytes] = [0, 0, 0, 0];
  while (performance.now() < end) {
    const step = next();
    const taken = await step.run();
    if (step.timed) times.push(taken);
    steps++;
    await settled(page);
    if (performance.now() - sampled > SAMPLE_MS) {
      tab = Math.max(tab, await tabBytes(session));
      serverBytes = Math.max(serverBytes, memory(server.pid, "VmHWM"));
      sampled = performance.now();
    }
  }
  tab = Math.max(tab, await tabBytes(session));
  serverBytes = Math.max(serverBytes, memory(server.pid, "VmHWM"));
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  await page.close();
  server.stop();
  return { steps, moves: times.length, median: at(0.5), p95: at(0.95), tab, server: serverBytes, faults };
}

export const words = (found) =>
  `${found.steps} steps, ${found.moves} moves: median ${found.median.toFixed(1)} ms, p95 ${found.p95.toFixed(1)} ms; tab ${(found.tab / 1e6).toFixed(0)} MB, server ${(found.server / 1e6).toFixed(0)} MB at most`;

if (process.argv[1]?.endsWith("walk.mjs")) {
  const [file, minutes] = process.argv.slice(2);
  const browser = await launch();
  const found = await walk(browser, file, Number(minutes));
  console.log(words(found));
  const fails = [
    ...found.faults,
    ...(found.tab > TAB_BYTES_MAX ? ["the tab takes too much memory"] : []),
    ...(found.server > SERVER_BYTES_MAX ? ["the server takes too much memory"] : []),
    ...(found.p95 > MOVE_P95_MS ? ["moves take too long"] : []),
  ];
  fails.forEach((text) => console.error(`failed: ${text}`));
  await close(browser);
  process.exit(fails.length === 0 ? 0 : 1);
}
