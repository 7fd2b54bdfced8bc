// Walks through a trace, inside the page: keys, wheel, marks, tabs, search, in an order drawn from a seed. `walk.mjs` puts
// it beside the page, because a browser that is watched while it walks keeps all answers.

const TABS = ["Selection", "Flame graph", "Call", "Summary", "Check"];
/** Moves among all steps. */
const MOVES = 0.8;
const STEP_MAX_MS = 1000;
/** Between steps: ten a second and more, faster than a person who holds a key. */
const PAUSE_MS = 50;

const parameters = new URL(import.meta.url).searchParams;
let random_ = Number(parameters.get("seed") ?? 1);
const random = () => (random_ = (random_ * 1103515245 + 12345) % 2147483648) / 2147483648;
const frame = () => new Promise((done) => requestAnimationFrame(done));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const state = () => window.__anytrace.state();
const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));

async function settled() {
  while (state().pending !== 0) await wait(5);
  await frame();
}

/** The time from a key to the frame that shows what it does. */
async function move() {
  const from = performance.now();
  const { frames } = state();
  press("wwsadad"[Math.floor(random() * 7)]);
  while (state().frames === frames && performance.now() - from < STEP_MAX_MS) await frame();
  return performance.now() - from;
}

const OTHERS = [
  () => press("f"),
  () => press("m"),
  () => press("Escape"),
  () => press("."),
  () => press("]"),
  () => {
    const stage = document.querySelector(".stage");
    const { left, top } = stage.getBoundingClientRect();
    const [deltaY, clientX, clientY] = [(random() - 0.5) * 600, left + random() * 800, top + random() * 200];
    stage.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX, clientY, ctrlKey: random() < 0.5, bubbles: true, cancelable: true }));
  },
  () => [...document.querySelectorAll("[role=tab]")].find((one) => one.textContent === TABS[Math.floor(random() * TABS.length)])?.click(),
  async () => {
    const field = document.querySelector("#search");
    field.value = String.fromCharCode(97 + Math.floor(random() * 26));
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await wait(300);
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  },
];

async function walk(minutes) {
  while (window.__anytrace === undefined || state().frames === 0) await wait(20);
  const [times, end] = [[], performance.now() + minutes * 60_000];
  let steps = 0;
  while (performance.now() < end) {
    if (random() < MOVES) times.push(await move());
    else await OTHERS[Math.floor(random() * OTHERS.length)]();
    steps++;
    await settled();
    await wait(PAUSE_MS);
  }
  return { steps, times, error: state().error };
}

const faults = [];
addEventListener("error", (event) => faults.push(event.message));
addEventListener("unhandledrejection", (event) => faults.push(String(event.reason)));
window.__walked = null;
window.__walked = { ...(await walk(Number(parameters.get("minutes")))), faults };
