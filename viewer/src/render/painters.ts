// Two ways to draw a batch: WebGL2 with one instanced quad a rectangle, and a 2D canvas where there is no WebGL2.

import { css, mix } from "../colors";
import { BATCH_STRIDE, type Batch } from "./batch";

export interface RectPainter {
  readonly kind: "webgl2" | "canvas";
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

/** The best painter for a canvas; `force` is for tests. */
export function choosePainter(canvas: HTMLCanvasElement, force: string | null): RectPainter {
  if (force !== "canvas") {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: false, preserveDrawingBuffer: false });
    const painter = gl && GlPainter.make(canvas, gl);
    if (painter) return painter;
  }
  return new CanvasPainter(canvas.getContext("2d", { alpha: false }));
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
    const program = buildProgram(gl);
    if (program === null) return null;
    const painter = new GlPainter(gl, program);
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      painter.program = null;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      painter.program = buildProgram(gl);
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

function buildProgram(gl: WebGL2RenderingContext): Program | null {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
    const shader = gl.createShader(kind);
    if (shader === null) return null;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (gl.getProgramParameter(program, gl.LINK_STATUS) !== true) return null;
  gl.useProgram(program);
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

class CanvasPainter implements RectPainter {
  readonly kind = "canvas";

  constructor(private readonly context: CanvasRenderingContext2D | null) {}

  draw(batch: Batch, width: number, height: number, background: number): void {
    const { context } = this;
    if (context === null) return;
    context.fillStyle = css(background);
    context.fillRect(0, 0, width, height);
    let last = -1;
    for (let i = 0; i < batch.count; i++) {
      const color = batch.color(i);
      const share = batch.share(i);
      const full = batch.height(i);
      const filled = share === 255 ? full : Math.max(1, (full * share) / 255);
      if (filled < full) {
        context.fillStyle = css(mix(color, background, UNFILLED));
        context.fillRect(batch.x(i), batch.y(i), batch.width(i), full - filled);
        last = -1;
      }
      if (color !== last) {
        context.fillStyle = css(color);
        last = color;
      }
      context.fillRect(batch.x(i), batch.y(i) + full - filled, batch.width(i), filled);
    }
  }
}
