// What one frame of the timeline holds: rectangles for the painter, and which item each of them is.

import { colorOf, GROUNDS, mix, type Theme } from "../colors";
import type { Entry } from "../state/loader";
import type { Names } from "../names";
import type { Range } from "../model";
import { DEPTH_HEIGHT, depthY, type Layout, type TrackLine } from "../rows";
import { FLAG_INSTANT, NO_NAME, type Picture } from "../tiles";
import { spanOf, without } from "../window";
import { Batch } from "./batch";

export interface Frame {
  layout: Layout;
  /** Indices of the visible lines. */
  lines: [number, number];
  view: Range;
  /** Device pixels. */
  width: number;
  height: number;
  ratio: number;
  scrollTop: number;
  theme: Theme;
  /** Positions of grid lines, in the trace's unit. */
  grid: readonly number[];
  /** Names that a search found: others are drawn faint. */
  found: ReadonlySet<number> | null;
}

/** An item of the last frame. */
export interface Drawn {
  picture: Picture;
  index: number;
  line: TrackLine;
  x: number;
  y: number;
  width: number;
  height: number;
}

/** An aggregate is never drawn lower than this share, or a row with little in it would look empty. */
const SHARE_MIN = 0.12;
/** A run of this many instants fills its row: each doubling adds the same. */
const INSTANTS_FULL_LOG2 = 14;
const FAINT = 0.25;

export class Scene {
  readonly batch = new Batch();
  private pictures: Picture[] = [];
  private lines: TrackLine[] = [];
  private itemPicture: number[] = [];
  private itemIndex: number[] = [];
  private itemLine: number[] = [];
  private firstItem = 0;
  private colors: { theme: Theme; known: number[] } = { theme: "light", known: [] };

  constructor(private readonly names: Names) {}

  get drawn(): number {
    return this.itemIndex.length;
  }

  build(frame: Frame, candidates: readonly Entry[]): void {
    this.batch.clear();
    this.pictures = candidates.map((entry) => entry.picture);
    this.lines = [];
    this.itemPicture.length = this.itemIndex.length = this.itemLine.length = 0;
    if (this.colors.theme !== frame.theme) this.colors = { theme: frame.theme, known: [] };
    this.ground(frame);
    this.firstItem = this.batch.count;
    for (let i = frame.lines[0]; i < frame.lines[1]; i++) {
      const line = frame.layout.lines[i];
      if (line?.kind === "track") this.track(frame, line, candidates);
    }
  }

  /** Bands of processes, grid lines and lines between tracks. */
  private ground(frame: Frame): void {
    const dark = frame.theme === "dark";
    const { background } = GROUNDS[frame.theme];
    const ink = dark ? 0xffffffff : 0xff000000;
    const k = frame.width / spanOf(frame.view);
    const hair = Math.max(1, Math.floor(frame.ratio));
    const gridColor = mix(ink, background, dark ? 0.07 : 0.06);
    for (const at of frame.grid) this.batch.push(Math.round((at - frame.view.start) * k), 0, hair, frame.height, gridColor);
    for (let i = frame.lines[0]; i < frame.lines[1]; i++) {
      const line = frame.layout.lines[i];
      if (line === undefined) continue;
      const y = Math.round((line.y - frame.scrollTop) * frame.ratio);
      const height = Math.round(line.height * frame.ratio);
      if (line.kind === "process") this.batch.push(0, y, frame.width, height, mix(ink, background, dark ? 0.06 : 0.045));
      else this.batch.push(0, y + height - hair, frame.width, hair, mix(ink, background, dark ? 0.09 : 0.08));
    }
  }

  private track(frame: Frame, line: TrackLine, candidates: readonly Entry[]): void {
    const lineNumber = this.lines.push(line) - 1;
    let open: Range[] = [frame.view];
    for (let c = 0; c < candidates.length && open.length > 0; c++) {
      const entry = candidates[c] as Entry;
      if (!entry.tracks.has(line.track.id)) continue;
      for (const part of open) this.part(frame, line, lineNumber, c, entry, part);
      open = open.flatMap((part) => without(part, entry.range));
    }
  }

  /** Draws what a picture has of a track in `part` of the view. */
  private part(frame: Frame, line: TrackLine, lineNumber: number, pictureNumber: number, entry: Entry, part: Range): void {
    const { picture } = entry;
    const [first, end] = picture.run(line.track.id);
    const { view, ratio } = frame;
    const k = frame.width / spanOf(view);
    const from = Math.max(part.start, entry.range.start);
    const to = Math.min(part.end, entry.range.end);
    const left = (from - view.start) * k;
    const right = (to - view.start) * k;
    const height = Math.round((DEPTH_HEIGHT - 1) * ratio);
    for (let i = first; i < end; i++) {
      const depth = picture.depth(i);
      if (depth >= line.depths) break;
      if (picture.end(i) < from || picture.start(i) > to) continue;
      const y = Math.round((depthY(line, depth) - frame.scrollTop) * ratio);
      if (y + height < 0 || y > frame.height) continue;
      this.item(frame, picture, i, (picture.start(i) - view.start) * k, (picture.end(i) - view.start) * k, left, right, y, height);
      this.itemPicture.push(pictureNumber);
      this.itemIndex.push(i);
      this.itemLine.push(lineNumber);
    }
  }

  private item(frame: Frame, picture: Picture, i: number, x0: number, x1: number, left: number, right: number, y: number, height: number): void {
    const isInstant = (picture.flags(i) & FLAG_INSTANT) !== 0;
    let start = Math.round(Math.max(x0, left, -4));
    const end = Math.round(Math.min(x1, right, frame.width + 4));
    let width = Math.max(end - start, 1);
    const several = picture.isAggregate(i);
    if (isInstant && !several) {
      width = Math.max(2, Math.round(2 * frame.ratio));
      start -= width >> 1;
    } else if (!several && width > 4) width -= 1;
    this.batch.push(start, y, width, height, this.color(frame, picture.longestName(i)), several ? aggregateShare(picture, i, isInstant) : 255);
  }

  private color(frame: Frame, name: number): number {
    const color = this.nameColor(name);
    return frame.found === null || frame.found.has(name) ? color : mix(color, GROUNDS[frame.theme].background, FAINT);
  }

  private nameColor(name: number): number {
    if (name === NO_NAME) return GROUNDS[this.colors.theme].unnamed;
    const known = this.colors.known[name];
    if (known !== undefined) return known;
    const text = this.names.raw(name);
    if (text === null) return GROUNDS[this.colors.theme].unnamed;
    const color = colorOf(text, this.colors.theme);
    this.colors.known[name] = color;
    return color;
  }

  /** The n-th item that was drawn. */
  at(n: number): Drawn {
    const rect = this.firstItem + n;
    return {
      picture: this.pictures[this.itemPicture[n] as number] as Picture,
      index: this.itemIndex[n] as number,
      line: this.lines[this.itemLine[n] as number] as TrackLine,
      x: this.batch.x(rect),
      y: this.batch.y(rect),
      width: this.batch.width(rect),
      height: this.batch.height(rect),
    };
  }

  widthOf(n: number): number {
    return this.batch.width(this.firstItem + n);
  }

  /** The item at a place in device pixels, or the nearest within `slack` pixels in its row. */
  hit(x: number, y: number, slack: number): Drawn | null {
    let best = -1;
    let distance = slack;
    for (let n = 0; n < this.itemIndex.length; n++) {
      const rect = this.firstItem + n;
      const top = this.batch.y(rect);
      if (y < top || y > top + this.batch.height(rect)) continue;
      const left = this.batch.x(rect);
      const right = left + this.batch.width(rect);
      const away = x < left ? left - x : x > right ? x - right : 0;
      if (away <= distance) {
        distance = away;
        best = n;
        if (away === 0) break;
      }
    }
    return best < 0 ? null : this.at(best);
  }
}

/** How much of its height an aggregate fills: the busy share of its time, or of instants their number. */
export function aggregateShare(picture: Picture, i: number, isInstant: boolean): number {
  const span = picture.end(i) - picture.start(i);
  const share = isInstant || picture.busy(i) <= 0 ? Math.log2(1 + picture.slices(i)) / INSTANTS_FULL_LOG2 : span > 0 ? picture.busy(i) / span : 1;
  // 255 means "not an aggregate".
  return Math.round(Math.min(1, Math.max(SHARE_MIN, share)) * 254);
}

