// What the tests in a browser and the pictures share: the program, the browser, a page that is settled.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
export const PROGRAM = process.env.ANYTRACE_COMMAND ?? join(ROOT, "target/debug/anytrace");
export const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const ARGUMENTS = [
  "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
];

export const launch = () => chromium.launch({ executablePath: BROWSER, args: ARGUMENTS });

/** Ends a browser; one that does not end is not waited for. */
export const close = (browser) => Promise.race([browser.close(), new Promise((done) => setTimeout(done, 5000))]);

/** Servers that run, which must not outlive the tests. */
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/** Starts a server and waits for the line with its address. */
export function start(command, args) {
  const child = spawn(command, args, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  return new Promise((resolve, reject) => {
    let text = "";
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${command} ${args.join(" ")} ended with ${code}`)));
    child.stdout.on("data", (part) => {
      text += part;
      const found = /http:\/\/127\.0\.0\.1:\d+\/\S*/.exec(text);
      if (found) resolve({ url: found[0], pid: child.pid, stop: () => child.removeAllListeners("exit") && child.kill("SIGTERM") });
    });
  });
}

/** Opens a page and collects what it complains about. */
export async function open(browser, url, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "light", ...options });
  const faults = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(url);
  await settled(page);
  return { page, faults };
}

/** Opens the page anew at a fragment. The page that is there goes first: it would write its own into the address. */
export async function lead(page, url, fragment) {
  await page.goto("about:blank");
  await page.goto(`${url}#${fragment}`);
  await settled(page);
}

/** Waits until all tiles are drawn. */
export async function settled(page) {
  await page.waitForFunction(() => {
    const now = window.__anytrace?.state();
    return now && now.pending === 0 && (now.frames > 0 || now.error !== null);
  });
  // Tiles that arrive with the last answer are painted in the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

export async function key(page, name) {
  await page.keyboard.press(name);
  await page.waitForTimeout(30);
  await settled(page);
}
