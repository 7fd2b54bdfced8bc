import { expect, test } from "vitest";
import { NO_NAME, Picture } from "../../src/tiles";

interface Item {
  track: number;
  depth: number;
  start: number;
  end: number;
  busy: number;
  count: number;
  name: number;
  flags: number;
  longest: number;
}

/** Writes an answer byte by byte, as the contract lists the fields. */
export function encode(items: Item[], flags = 0, magic = 0x31545641): ArrayBuffer {
  const buffer = new ArrayBuffer(16 + items.length * 48);
  const view = new DataView(buffer);
  [magic, items.length, 9, flags].forEach((word, i) => view.setUint32(i * 4, word, true));
  items.forEach((item, i) => {
    const at = 16 + i * 48;
    view.setUint32(at, item.track, true);
    view.setUint32(at + 4, item.depth, true);
    view.setFloat64(at + 8, item.start, true);
    view.setFloat64(at + 16, item.end, true);
    view.setFloat64(at + 24, item.busy, true);
    view.setUint32(at + 32, item.count, true);
    view.setUint32(at + 36, item.name, true);
    view.setUint32(at + 40, item.flags, true);
    view.setUint32(at + 44, item.longest, true);
  });
  return buffer;
}

const ONE: Item = { track: 3, depth: 1, start: 1e15 + 1, end: 1e15 + 5, busy: 4, count: 1, name: 7, flags: 1, longest: NO_NAME };
const MANY: Item = { track: 4, depth: 0, start: 10, end: 90, busy: 33.5, count: 12, name: NO_NAME, flags: 0, longest: 2 };

test("every field is where the contract puts it", () => {
  const picture = new Picture(encode([ONE, MANY], 1));
  expect([picture.count, picture.incomplete]).toEqual([2, true]);
  expect([picture.track(0), picture.depth(0), picture.start(0), picture.end(0)]).toEqual([3, 1, 1e15 + 1, 1e15 + 5]);
  expect([picture.busy(1), picture.slices(1), picture.name(1), picture.flags(0)]).toEqual([33.5, 12, NO_NAME, 1]);
});

test("an aggregate has the color of its longest slice, a slice its own", () => {
  const picture = new Picture(encode([ONE, MANY]));
  expect([picture.longestName(0), picture.longestName(1)]).toEqual([7, 2]);
  expect([picture.isAggregate(0), picture.isAggregate(1)]).toEqual([false, true]);
});

test("each track is a run of items", () => {
  const picture = new Picture(encode([{ ...ONE, track: 1 }, { ...ONE, track: 1 }, { ...ONE, track: 5 }]));
  expect([picture.run(1), picture.run(5), picture.run(2)]).toEqual([[0, 2], [2, 3], [0, 0]]);
});

test("an answer that is cut, too long or another's is refused", () => {
  const good = encode([ONE]);
  expect(() => new Picture(good.slice(0, 10))).toThrow("no header");
  expect(() => new Picture(good.slice(0, 60))).toThrow("expected 64 bytes, found 60");
  expect(() => new Picture(encode([ONE], 0, 1))).toThrow("not an answer");
  expect(new Picture(encode([])).count).toBe(0);
});
