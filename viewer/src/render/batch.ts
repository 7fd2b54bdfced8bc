// The rectangles of one frame, as the painters take them: five words each.

const WORDS = 6;

export class Batch {
  count = 0;
  /** x, y, width, height in device pixels; color; share of the height that is filled, 0 to 255. */
  private buffer = new ArrayBuffer(4096 * WORDS * 4);
  private floats = new Float32Array(this.buffer);
  private words = new Uint32Array(this.buffer);

  clear(): void {
    this.count = 0;
  }

  push(x: number, y: number, width: number, height: number, color: number, share = 255): void {
    const at = this.count * WORDS;
    if (at + WORDS > this.floats.length) this.grow();
    this.floats[at] = x;
    this.floats[at + 1] = y;
    this.floats[at + 2] = width;
    this.floats[at + 3] = height;
    this.words[at + 4] = color;
    this.words[at + 5] = share;
    this.count++;
  }

  private grow(): void {
    const larger = new ArrayBuffer(this.buffer.byteLength * 2);
    new Uint32Array(larger).set(this.words);
    this.buffer = larger;
    this.floats = new Float32Array(larger);
    this.words = new Uint32Array(larger);
  }

  bytes(): Uint32Array {
    return this.words.subarray(0, this.count * WORDS);
  }

  x(i: number): number {
    return this.floats[i * WORDS] as number;
  }
  y(i: number): number {
    return this.floats[i * WORDS + 1] as number;
  }
  width(i: number): number {
    return this.floats[i * WORDS + 2] as number;
  }
  height(i: number): number {
    return this.floats[i * WORDS + 3] as number;
  }
  color(i: number): number {
    return this.words[i * WORDS + 4] as number;
  }
  share(i: number): number {
    return this.words[i * WORDS + 5] as number;
  }
}

export const BATCH_STRIDE = WORDS * 4;
