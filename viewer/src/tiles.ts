// The binary answer of `api/tiles`: what the rows hold in a window, at most about two items a pixel and row.

const MAGIC = 0x31545641;
const HEADER_BYTES = 16;
const ITEM_BYTES = 48;
/** The name of an item that stands for slices of several names, and of no name. */
export const NO_NAME = 0xffffffff;

export const FLAG_OPEN = 1;
export const FLAG_DEDUCED = 2;
export const FLAG_BEFORE = 4;
export const FLAG_INSTANT = 8;

/** The items of one answer. They are read from the buffer where they lie: a picture has up to some hundred thousand. */
export class Picture {
  readonly count: number;
  /** True if the server had not read the window completely. */
  readonly incomplete: boolean;
  readonly bytes: number;
  private readonly times: Float64Array;
  private readonly words: Uint32Array;
  private readonly runs = new Map<number, [number, number]>();

  constructor(buffer: ArrayBuffer) {
    if (buffer.byteLength < HEADER_BYTES) throw new Error(`tiles: ${buffer.byteLength} bytes are no header`);
    const header = new Uint32Array(buffer, 0, 4);
    if (header[0] !== MAGIC) throw new Error("tiles: not an answer of this server");
    this.count = header[1] ?? 0;
    this.incomplete = ((header[3] ?? 0) & 1) !== 0;
    const expected = HEADER_BYTES + this.count * ITEM_BYTES;
    if (buffer.byteLength !== expected) throw new Error(`tiles: expected ${expected} bytes, found ${buffer.byteLength}`);
    this.bytes = buffer.byteLength;
    this.times = new Float64Array(buffer);
    this.words = new Uint32Array(buffer);
    this.findRuns();
  }

  /** Items are sorted by track: each track is one run. */
  private findRuns(): void {
    let from = 0;
    for (let i = 1; i <= this.count; i++) {
      if (i < this.count && this.track(i) === this.track(from)) continue;
      this.runs.set(this.track(from), [from, i]);
      from = i;
    }
  }

  /** The items of a track: `[first, end)`. */
  run(track: number): [number, number] {
    return this.runs.get(track) ?? [0, 0];
  }

  track(i: number): number {
    return this.words[4 + 12 * i] as number;
  }
  depth(i: number): number {
    return this.words[5 + 12 * i] as number;
  }
  start(i: number): number {
    return this.times[3 + 6 * i] as number;
  }
  end(i: number): number {
    return this.times[4 + 6 * i] as number;
  }
  busy(i: number): number {
    return this.times[5 + 6 * i] as number;
  }
  slices(i: number): number {
    return this.words[12 + 12 * i] as number;
  }
  name(i: number): number {
    return this.words[13 + 12 * i] as number;
  }
  flags(i: number): number {
    return this.words[14 + 12 * i] as number;
  }
  /** Of several slices: the name of the longest. Of one: its own name. */
  longestName(i: number): number {
    const name = this.words[15 + 12 * i] as number;
    return name === NO_NAME ? this.name(i) : name;
  }
  isAggregate(i: number): boolean {
    return this.slices(i) > 1;
  }
}
