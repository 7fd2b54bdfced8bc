// The pointer on the minimap: a click or drag moves the window there, the wheel zooms.

import type { Controller } from "../state/controller";
import { spanOf } from "../window";

export function connectMinimap(canvas: HTMLCanvasElement, controller: Controller): void {
  let dragging = false;
  const moveTo = (event: PointerEvent): void => {
    const { trace, view } = controller.store.get();
    const range = trace?.range;
    if (!range) return;
    const box = canvas.getBoundingClientRect();
    const at = range.start + (spanOf(range) * (event.clientX - box.left)) / Math.max(box.width, 1);
    const half = spanOf(view) / 2;
    controller.setView({ start: at - half, end: at + half });
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    dragging = true;
    canvas.setPointerCapture(event.pointerId);
    moveTo(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (dragging) moveTo(event);
  });
  for (const end of ["pointerup", "pointercancel"] as const) {
    canvas.addEventListener(end, () => {
      dragging = false;
    });
  }
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    controller.zoomBy(Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * 0.0022), 0.5);
  }, { passive: false });
}
