// Mouse, wheel and touch on the timeline.
//
// Drag moves; Shift and drag, or a drag on the axis, marks; Alt and drag moves the file under the pointer on the axis. The wheel scrolls the rows and zooms with Ctrl (which is
// also how browsers report a pinch on a touchpad); where all rows fit there is nothing to scroll, and it zooms. Two
// fingers zoom and move.

import type { Controller } from "../state/controller";
import type { Range } from "../model";
import { spanOf } from "../window";

const CLICK_PIXELS = 4;
const WHEEL_ZOOM = 0.0022;

export interface Surface {
  element: HTMLElement;
  /** Left edge and width of the time axis in the page. */
  box(): { left: number; width: number };
  isScrollable(): boolean;
  marksAlways: boolean;
  clicked(x: number, y: number): void;
  moved(x: number, y: number): void;
  left(): void;
  scrollBy(pixels: number): void;
  /** The file whose rows are at a height of the page, if there are several. */
  fileAt(y: number): number | null;
}

interface Finger {
  x: number;
  y: number;
}

export class Pointer {
  private readonly fingers = new Map<number, Finger>();
  private travelled = 0;
  private markFrom: number | null = null;
  /** A file that is being moved, and where on the axis it was taken. */
  private carried: { file: number; from: number } | null = null;

  constructor(
    private readonly surface: Surface,
    private readonly controller: Controller,
  ) {
    const { element } = surface;
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.move(event));
    element.addEventListener("pointerup", (event) => this.up(event));
    element.addEventListener("pointercancel", (event) => this.forget(event));
    element.addEventListener("pointerleave", () => this.surface.left());
    element.addEventListener("dblclick", () => this.controller.run("fitMark", false, 0.5));
  }

  private get view(): Range {
    return this.controller.store.get().view;
  }

  private share(x: number): number {
    const { left, width } = this.surface.box();
    return (x - left) / Math.max(width, 1);
  }

  private time(x: number): number {
    return this.view.start + spanOf(this.view) * this.share(x);
  }

  private wheel(event: WheelEvent): void {
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const [dx, dy] = [event.deltaX * lines, event.deltaY * lines];
    const { width } = this.surface.box();
    if (event.ctrlKey || event.metaKey || (!event.shiftKey && Math.abs(dy) >= Math.abs(dx) && !this.surface.isScrollable())) {
      event.preventDefault();
      const strength = event.ctrlKey && Math.abs(dy) < 40 ? WHEEL_ZOOM * 4 : WHEEL_ZOOM;
      this.controller.zoomBy(Math.exp(Math.max(-300, Math.min(300, dy)) * strength), this.share(event.clientX));
    } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      event.preventDefault();
      this.controller.panBy((Math.abs(dx) > Math.abs(dy) ? dx : dy) / width);
    }
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.surface.element.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.travelled = this.fingers.size > 1 ? CLICK_PIXELS + 1 : 0;
    const file = event.altKey && this.fingers.size === 1 ? this.surface.fileAt(event.clientY) : null;
    this.carried = file === null ? null : { file, from: this.time(event.clientX) };
    this.markFrom = (event.shiftKey || this.surface.marksAlways) && this.fingers.size === 1 ? this.time(event.clientX) : null;
  }

  private move(event: PointerEvent): void {
    const finger = this.fingers.get(event.pointerId);
    if (finger === undefined) {
      this.surface.moved(event.clientX, event.clientY);
      return;
    }
    const [dx, dy] = [event.clientX - finger.x, event.clientY - finger.y];
    this.travelled += Math.abs(dx) + Math.abs(dy);
    if (this.fingers.size === 2) this.pinch(event);
    else if (this.travelled > CLICK_PIXELS) this.drag(event, dx, dy);
    else return;
    this.fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  private drag(event: PointerEvent, dx: number, dy: number): void {
    if (this.markFrom !== null) {
      const now = this.time(event.clientX);
      this.controller.store.set({ mark: { start: Math.min(this.markFrom, now), end: Math.max(this.markFrom, now) } });
      return;
    }
    if (this.carried !== null) {
      this.controller.carry(this.carried.file, this.time(event.clientX) - this.carried.from);
      return;
    }
    this.controller.panBy(-dx / this.surface.box().width);
    this.surface.scrollBy(-dy);
  }

  private pinch(event: PointerEvent): void {
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    const finger = this.fingers.get(event.pointerId);
    if (!other || !finger) return;
    const before = Math.max(Math.abs(finger.x - other.x), 20);
    const now = Math.max(Math.abs(event.clientX - other.x), 20);
    this.controller.zoomBy(before / now, this.share((event.clientX + other.x) / 2));
    this.controller.panBy(-(event.clientX - finger.x) / 2 / this.surface.box().width);
  }

  private up(event: PointerEvent): void {
    const wasOnly = this.fingers.size === 1;
    const { mark } = this.controller.store.get();
    const { carried } = this;
    this.carried = null;
    this.forget(event);
    if (!wasOnly) return;
    if (carried !== null && this.travelled > CLICK_PIXELS) {
      void this.controller.moveBy(carried.file, this.time(event.clientX) - carried.from);
      return;
    }
    if (this.travelled <= CLICK_PIXELS) this.surface.clicked(event.clientX, event.clientY);
    else if (this.markFrom !== null && mark) this.controller.setMark(mark);
    this.markFrom = null;
  }

  private forget(event: PointerEvent): void {
    this.fingers.delete(event.pointerId);
  }
}
