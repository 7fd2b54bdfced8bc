// A picture of what is visible, for a file: names of the lines at the left, the axis above.

import { css, GROUNDS } from "../colors";
import type { Frame, Scene } from "./scene";
import { imageOf } from "./painters";

export const GUTTER = 220;
export const AXIS = 26;

export interface Still {
  frame: Frame;
  scene: Scene;
  axis(context: CanvasRenderingContext2D, size: { width: number; height: number }): void;
  overlay(context: CanvasRenderingContext2D): void;
}

export function drawStill({ frame, scene, axis, overlay }: Still): HTMLCanvasElement {
  const { width, height, ratio, theme } = frame;
  const [left, top] = [Math.round(GUTTER * ratio), Math.round(AXIS * ratio)];
  const canvas = document.createElement("canvas");
  canvas.width = left + width;
  canvas.height = top + height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return canvas;
  const { background } = GROUNDS[theme];
  context.fillStyle = css(background);
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.putImageData(imageOf(scene.batch, width, height, background), left, top);
  within(context, left, top, width, height, () => overlay(context));
  within(context, left, 0, width, top, () => axis(context, { width, height: top }));
  within(context, 0, top, left, height, () => names(context, frame));
  return canvas;
}

function within(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, draw: () => void): void {
  context.save();
  context.translate(x, y);
  context.beginPath();
  context.rect(0, 0, width, height);
  context.clip();
  draw();
  context.restore();
}

function names(context: CanvasRenderingContext2D, { layout, lines, scrollTop, ratio, theme }: Frame): void {
  context.textBaseline = "top";
  for (const line of layout.lines.slice(...lines)) {
    const y = (line.y - scrollTop + 5) * ratio;
    const isProcess = line.kind === "process";
    context.font = `${isProcess ? "bold " : ""}${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
    context.fillStyle = GROUNDS[theme].text;
    context.textAlign = "left";
    context.fillText(line.label, (isProcess ? 10 : 22) * ratio, y, (GUTTER - 70) * ratio);
    context.fillStyle = GROUNDS[theme].faint;
    context.textAlign = "right";
    context.fillText(line.detail, (GUTTER - 8) * ratio, y, 60 * ratio);
  }
}
