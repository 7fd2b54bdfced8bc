// Two ways to draw a batch: WebGL2 with one instanced quad a rectangle, and pixels of our own where there is no graphics
// card.

import { mix } from "../colors";
import { BATCH_STRIDE, type Batch } from "./batch";
import { buildProgram } from "./surface";

export interface RectPainter {
  readonly kind: "webgl2" | "pixels";
  draw(batch: Batch, width: number, height: number, background: number): void;
}

/** What is left of a color in the unfilled part of an aggregate. */
const UNFILLED = 0.22;

const VERTEX = `#version 300 es
in vec2 corner; in vec4 rect; in vec4 color; in uint share;
uniform vec2 size;
out vec4 fill; out float level; flat out float filled;
void main() {
  vec2 at = (rect.xy + corner * rect.zw) / size;
  gl_Position = vec4(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0);
  fill = color; level = 1.0 - corner.y; filled = float(share) / 255.0;
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 fill; in float level; flat in float filled;
uniform vec3 ground;
out vec4 result;
void main() {
  vec3 color = level <= filled ? fill.rgb : mix(ground, fill.rgb, ${UNFILLED.toFixed(2)});
  result = vec4(color * fill.a, fill.a);
}`;

/** A painter on a graphics card; null where there is none, or no WebGL2. */
export function cardPainter(canvas: HTMLCanvasElement): RectPainter | null {
  const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: false, preserveDrawingBuffer: false });
  return gl && GlPainter.make(canvas, gl);
}

interface Program {
  size: WebGLUniformLocation | null;
  ground: WebGLUniformLocation | null;
  instances: WebGLBuffer | null;
}

class GlPainter implements RectPainter {
  readonly kind = "webgl2";
  private capacity = 0;

  private constructor(
    private readonly gl: WebGL2RenderingContext,
    private program: Program | null,
  ) {}

  static make(canvas: HTMLCanvasElement, gl: WebGL2RenderingContext): GlPainter | null {
    const program = rectProgram(gl);
    if (program === null) return null;
    const painter = new GlPainter(gl, program);
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      painter.program = null;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      painter.program = rectProgram(gl);
      painter.capacity = 0;
    });
    return painter;
  }

  draw(batch: Batch, width: number, height: number, background: number): void {
    const { gl, program } = this;
    if (program === null) return;
    const part = (shift: number): number => ((background >> shift) & 255) / 255;
    gl.viewport(0, 0, width, height);
    gl.clearColor(part(0), part(8), part(16), 1);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (batch.count === 0) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, program.instances);
    const bytes = batch.bytes();
    if (bytes.byteLength > this.capacity) {
      this.capacity = bytes.byteLength * 2;
      gl.bufferData(gl.ARRAY_BUFFER, this.capacity, gl.DYNAMIC_DRAW);
    }
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, bytes);
    gl.uniform2f(program.size, width, height);
    gl.uniform3f(program.ground, part(0), part(8), part(16));
    gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, batch.count);
  }
}

function rectProgram(gl: WebGL2RenderingContext): Program | null {
  const program = buildProgram(gl, VERTEX, FRAGMENT);
  if (program === null) return null;
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const corners = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, corners);
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
  attribute(gl, program, "corner", (at) => gl.vertexAttribPointer(at, 2, gl.FLOAT, false, 0, 0), 0);
  const instances = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, instances);
  attribute(gl, program, "rect", (at) => gl.vertexAttribPointer(at, 4, gl.FLOAT, false, BATCH_STRIDE, 0), 1);
  attribute(gl, program, "color", (at) => gl.vertexAttribPointer(at, 4, gl.UNSIGNED_BYTE, true, BATCH_STRIDE, 16), 1);
  attribute(gl, program, "share", (at) => gl.vertexAttribIPointer(at, 1, gl.UNSIGNED_INT, BATCH_STRIDE, 20), 1);
  return { size: gl.getUniformLocation(program, "size"), ground: gl.getUniformLocation(program, "ground"), instances };
}

function attribute(gl: WebGL2RenderingContext, program: WebGLProgram, name: string, point: (at: number) => void, divisor: number): void {
  const at = gl.getAttribLocation(program, name);
  gl.enableVertexAttribArray(at);
  point(at);
  gl.vertexAttribDivisor(at, divisor);
}

export class PixelPainter implements RectPainter {
  readonly kind = "pixels";
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);

  constructor(private readonly context: CanvasRenderingContext2D | null) {}

  draw(batch: Batch, width: number, height: number, background: number): void {
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    fillPixels(this.pixels, width, height, batch, background);
    this.context?.putImageData(this.image, 0, 0);
  }
}

/** A batch as an image. */
export function imageOf(batch: Batch, width: number, height: number, background: number): ImageData {
  const image = new ImageData(width, height);
  fillPixels(new Uint32Array(image.data.buffer), width, height, batch, background);
  return image;
}

/** Draws a batch into rows of pixels, which have their bytes in the order of its colors. All colors are opaque. */
export function fillPixels(pixels: Uint32Array, width: number, height: number, batch: Batch, background: number): void {
  pixels.fill(background);
  for (let i = 0; i < batch.count; i++) {
    const left = Math.max(0, Math.round(batch.x(i)));
    const right = Math.min(width, Math.round(batch.x(i) + batch.width(i)));
    const y = batch.y(i);
    const top = Math.max(0, Math.round(y));
    const bottom = Math.min(height, Math.round(y + batch.height(i)));
    if (left >= right || top >= bottom) continue;
    const color = batch.color(i);
    const share = batch.share(i);
    const empty = share === 255 ? top : Math.min(bottom, Math.max(top, Math.round(y + batch.height(i) * (1 - share / 255))));
    if (empty > top) fillRect(pixels, width, left, right, top, empty, mix(color, background, UNFILLED));
    fillRect(pixels, width, left, right, empty, bottom, color);
  }
}

/** Widths from which the engine's own filling is faster. */
const WIDE = 24;

function fillRect(pixels: Uint32Array, width: number, left: number, right: number, top: number, bottom: number, color: number): void {
  for (let row = top * width; row < bottom * width; row += width) {
    if (right - left >= WIDE) pixels.fill(color, row + left, row + right);
    else for (let at = row + left; at < row + right; at++) pixels[at] = color;
  }
}
