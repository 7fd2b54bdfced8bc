// The page's start.

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Names } from "./names";
import { Controller } from "./state/controller";
import { NO_SEARCH, Store } from "./state/store";
import { App } from "./ui/App";
import { readFragment } from "./url";

const PANEL_HEIGHT = 320;

function start(): void {
  const root = document.getElementById("app");
  if (root === null) return;
  const kept = readFragment(location.hash);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const store = new Store({
    trace: null,
    view: kept.view ?? { start: 0, end: 1 },
    fits: kept.view === null,
    mark: kept.mark,
    slice: null,
    notes: kept.notes,
    closed: new Set(kept.closed),
    tab: kept.tab,
    theme: kept.theme ?? (dark.matches ? "dark" : "light"),
    themeChosen: kept.theme !== null,
    search: NO_SEARCH,
    sql: kept.sql,
    error: null,
    message: "",
    help: false,
    perfetto: kept.perfetto !== null,
    editing: -1,
    panelHeight: Math.min(PANEL_HEIGHT, Math.round(window.innerHeight * 0.4)),
  });
  dark.addEventListener("change", (event) => {
    if (!store.get().themeChosen) store.set({ theme: event.matches ? "dark" : "light" });
  });
  const names = new Names();
  const controller = new Controller(store, names);
  render(<App controller={controller} names={names} />, root);
  void controller.start();
}

start();
