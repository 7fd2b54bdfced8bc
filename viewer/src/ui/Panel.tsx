// The panel below the timeline: tabs, and a border that a person can move.

import { useEffect, useState } from "preact/hooks";
import type { Controller } from "../state/controller";
import { useStore } from "../state/store";
import { CallTab } from "./CallTab";
import { FlameTab } from "./FlameTab";
import { SectionTab } from "./SectionTab";
import { SelectionTab } from "./SelectionTab";
import { SqlTab } from "./SqlTab";

const HEIGHT_MIN = 120;
const HEIGHT_STEP = 32;
/** How much of the window stays for the timeline. */
const TIMELINE_MIN = 180;

const SECTION_TITLES: Record<string, string> = { memory: "Memory" };

function tabsOf(sections: readonly string[]): [string, string][] {
  return [
    ["selection", "Selection"],
    ["flame", "Flame graph"],
    ["call", "Call"],
    ["sql", "SQL"],
    ...sections.map((name): [string, string] => [`section-${name}`, SECTION_TITLES[name] ?? name]),
  ];
}

export function Panel({ controller }: { controller: Controller }) {
  const { store } = controller;
  const tab = useStore(store, (state) => state.tab);
  const sections = useStore(store, (state) => state.trace?.sections) ?? [];
  const height = useStore(store, (state) => state.panelHeight);
  const tabs = tabsOf(sections);
  const current = tabs.some(([id]) => id === tab) ? tab : null;
  return (
    <section class={current === null ? "panel closed" : "panel"} style={current === null ? {} : { height: `${height}px` }} aria-label="Details">
      {current !== null && <Border controller={controller} height={height} />}
      <div class="tabs">
        <div role="tablist" aria-label="Details" data-arrows="" onKeyDown={(event) => moveTab(event, tabs, current, controller)}>
          {tabs.map(([id, title], i) => (
            <button
              type="button" role="tab" key={id} id={`tab-${id}`} aria-selected={id === current} aria-controls="tab-content"
              tabIndex={id === current || (current === null && i === 0) ? 0 : -1} onClick={() => store.set({ tab: id === current ? null : id })}
            >
              {title}
            </button>
          ))}
        </div>
        {current !== null && <button type="button" class="plain" onClick={() => store.set({ tab: null })} aria-label="Hide the panel" title="Hide the panel (p)">✕</button>}
      </div>
      {current !== null && (
        <div class="tab-content" id="tab-content" role="tabpanel" aria-labelledby={`tab-${current}`} key={current}>
          <Content controller={controller} tab={current} />
        </div>
      )}
    </section>
  );
}

function Content({ controller, tab }: { controller: Controller; tab: string }) {
  switch (tab) {
    case "selection":
      return <SelectionTab controller={controller} />;
    case "flame":
      return <FlameTab controller={controller} />;
    case "call":
      return <CallTab controller={controller} />;
    case "sql":
      return <SqlTab controller={controller} />;
    default:
      return <SectionTab controller={controller} name={tab.replace(/^section-/, "")} />;
  }
}

function moveTab(event: KeyboardEvent, tabs: [string, string][], current: string | null, controller: Controller): void {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const at = Math.max(0, tabs.findIndex(([id]) => id === current));
  const next = tabs[(at + step + tabs.length) % tabs.length]?.[0] ?? null;
  controller.store.set({ tab: next });
  if (next !== null) document.getElementById(`tab-${next}`)?.focus();
}

function Border({ controller, height }: { controller: Controller; height: number }) {
  const [dragging, setDragging] = useState(false);
  const resize = (pixels: number): void => controller.store.set({ panelHeight: Math.round(Math.max(HEIGHT_MIN, Math.min(pixels, window.innerHeight - TIMELINE_MIN))) });
  useEffect(() => {
    const fit = (): void => resize(controller.store.get().panelHeight);
    window.addEventListener("resize", fit);
    return () => window.removeEventListener("resize", fit);
  }, [controller]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowUp" ? HEIGHT_STEP : event.key === "ArrowDown" ? -HEIGHT_STEP : 0;
    if (step === 0) return;
    event.preventDefault();
    resize(height + step);
  };
  return (
    <div
      class={dragging ? "border dragging" : "border"} role="separator" aria-orientation="horizontal" aria-label="Height of the panel" aria-valuenow={height}
      tabIndex={0} data-arrows="" onKeyDown={onKeyDown}
      onPointerDown={(event) => { event.currentTarget.setPointerCapture(event.pointerId); setDragging(true); }}
      onPointerMove={(event) => { if (dragging) resize(window.innerHeight - event.clientY); }}
      onPointerUp={() => setDragging(false)}
    />
  );
}
