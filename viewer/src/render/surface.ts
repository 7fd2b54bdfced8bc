// What a frame is drawn on. With a graphics card those are canvases on the page. Without one the browser lets the
// processor do the card's work, drawing by drawing, and reads each canvas back before it shows it: ten times the time. Then
// one canvas that is not on the page is drawn for all of them; its pixels are read once a frame, and shown by a textured
// rectangle on each.

/** The canvases of a frame, from the top of a sheet to its bottom. */
export interface Surfaces {
  /** For what is drawn in pixels: the first canvas is the top left corner of it. Null where there is none. */
  readonly context: CanvasRenderingContext2D | null;
  /** Gives the canvases their sizes in device pixels; that may clear them. */
  resize(sizes: readonly Size[]): void;
  /** Draws on one of them, from its own top left corner. */
  draw(canvas: number, draw: (context: CanvasRenderingContext2D) => void): void;
  /** Shows what was drawn. */
  present(): void;
}

export interface Size {
  width: number;
  height: number;
}

/** Names of renderers that draw on the processor. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|basic render|software/i;

let software: boolean | null = null;

/** Whether WebGL is the processor's work here. */
export function isSoftware(): boolean {
  software ??= findSoftware();
  return software;
}

function findSoftware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2");
  if (gl === null) return false;
  const names = gl.getExtension("WEBGL_debug_renderer_info");
  const renderer: unknown = gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return SOFTWARE.test(String(renderer));
}

/** The surfaces for canvases of the page. */
export function surfacesOf(canvases: readonly HTMLCanvasElement[]): Surfaces {
  return (isSoftware() ? Sheet.make(canvases) : null) ?? new Direct(canvases);
}

class Direct implements Surfaces {
  private readonly contexts: (CanvasRenderingContext2D | null)[];

  constructor(private readonly canvases: readonly HTMLCanvasElement[]) {
    this.contexts = canvases.map((canvas) => canvas.getContext("2d"));
  }

  get context(): CanvasRenderingContext2D | null {
    return this.contexts[0] ?? null;
  }

  resize(sizes: readonly Size[]): void {
    this.canvases.forEach((canvas, i) => resize(canvas, sizes[i] ?? canvas));
  }

  draw(canvas: number, draw: (context: CanvasRenderingContext2D) => void): void {
    const context = this.contexts[canvas];
    if (context) draw(context);
  }

  present(): void {
    // The browser does.
  }
}

const VERTEX = `#version 300 es
out vec2 at;
void main() {
  at = vec2(gl_VertexID & 1, gl_VertexID >> 1);
  gl_Position = vec4(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in vec2 at;
uniform sampler2D sheet;
out vec4 color;
void main() { color = texture(sheet, at); }`;

class Sheet implements Surfaces {
  /** Of each canvas, the first row of the sheet that is its own. */
  private tops: number[] = [];

  private constructor(
    private readonly targets: readonly Target[],
    private readonly sheet: HTMLCanvasElement,
    readonly context: CanvasRenderingContext2D,
  ) {}

  static make(canvases: readonly HTMLCanvasElement[]): Sheet | null {
    const sheet = document.createElement("canvas");
    const context = sheet.getContext("2d", { willReadFrequently: true });
    const targets = canvases.flatMap((canvas) => Target.make(canvas) ?? []);
    return context && targets.length === canvases.length ? new Sheet(targets, sheet, context) : null;
  }

  resize(sizes: readonly Size[]): void {
    this.targets.forEach((target, i) => resize(target.canvas, sizes[i] ?? target.canvas));
    let height = 0;
    this.tops = sizes.map((size) => (height += size.height) - size.height);
    resize(this.sheet, { width: Math.max(0, ...sizes.map((size) => size.width)), height });
  }

  draw(canvas: number, draw: (context: CanvasRenderingContext2D) => void): void {
    const { context } = this;
    const { width, height } = this.targets[canvas]?.canvas ?? { width: 0, height: 0 };
    context.save();
    context.translate(0, this.tops[canvas] ?? 0);
    context.beginPath();
    context.rect(0, 0, width, height);
    context.clip();
    draw(context);
    context.restore();
  }

  present(): void {
    const { width, height } = this.sheet;
    if (width === 0 || height === 0) return;
    const pixels = this.context.getImageData(0, 0, width, height).data;
    this.targets.forEach((target, i) => target.show(pixels, width, this.tops[i] ?? 0));
  }
}

/** A canvas that shows a part of a sheet. */
class Target {
  private isLost = false;
  private textureSize = "";

  private constructor(
    readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
  ) {
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.isLost = true;
    });
    canvas.addEventListener("webglcontextrestored", () => {
      this.isLost = !buildProgram(gl, VERTEX, FRAGMENT);
      this.textureSize = "";
    });
  }

  static make(canvas: HTMLCanvasElement): Target | null {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: false });
    return gl && buildProgram(gl, VERTEX, FRAGMENT) ? new Target(canvas, gl) : null;
  }

  /** Shows the rows of a sheet from `top` on. */
  show(pixels: Uint8ClampedArray, sheetWidth: number, top: number): void {
    const { gl } = this;
    const { width, height } = this.canvas;
    if (this.isLost || width === 0 || height === 0) return;
    if (this.textureSize !== `${width} ${height}`) this.newTexture(width, height);
    gl.viewport(0, 0, width, height);
    gl.pixelStorei(gl.UNPACK_ROW_LENGTH, sheetWidth);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels, top * sheetWidth * 4);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }

  private newTexture(width: number, height: number): void {
    const { gl } = this;
    gl.deleteTexture(gl.getParameter(gl.TEXTURE_BINDING_2D) as WebGLTexture | null);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, width, height);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    this.textureSize = `${width} ${height}`;
  }
}

/** Gives a canvas its size in device pixels; setting it clears, so only when it changed. */
export function resize(canvas: HTMLCanvasElement, { width, height }: Size): void {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
}

/** A program in use; null if the driver refuses it. */
export function buildProgram(gl: WebGL2RenderingContext, vertex: string, fragment: string): WebGLProgram | null {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]] as const) {
    const shader = gl.createShader(kind);
    if (shader === null) return null;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (gl.getProgramParameter(program, gl.LINK_STATUS) !== true) return null;
  gl.useProgram(program);
  return program;
}
