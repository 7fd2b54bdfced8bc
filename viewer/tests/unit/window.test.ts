import { expect, test } from "vitest";
import { around, clamp, contains, nonEmpty, pan, spanOf, without, zoom } from "../../src/window";

const RANGE = { start: 1000, end: 1_001_000 };

test("zooming keeps the anchor's time in place", () => {
  const view = { start: 200_000, end: 400_000 };
  const closer = zoom(view, RANGE, 0.5, 0.25);
  expect(spanOf(closer)).toBeCloseTo(100_000);
  expect(closer.start + spanOf(closer) * 0.25).toBeCloseTo(250_000);
});

test("zooming in and out again comes back", () => {
  const view = { start: 200_000, end: 400_000 };
  const back = zoom(zoom(view, RANGE, 0.65), RANGE, 1 / 0.65);
  expect(back.start).toBeCloseTo(view.start);
  expect(back.end).toBeCloseTo(view.end);
});

test("the window has a finest and a widest span", () => {
  let view = { ...RANGE };
  for (let i = 0; i < 100; i++) view = zoom(view, RANGE, 0.5);
  expect(spanOf(view)).toBeCloseTo(10);
  for (let i = 0; i < 100; i++) view = zoom(view, RANGE, 2);
  expect(spanOf(view)).toBeCloseTo(1.25 * spanOf(RANGE));
});

test("the window stays near the trace", () => {
  let view = { start: 2000, end: 4000 };
  for (let i = 0; i < 50; i++) view = pan(view, RANGE, -1);
  expect(view).toEqual({ start: 0, end: 2000 });
  for (let i = 0; i < 5000; i++) view = pan(view, RANGE, 1);
  expect(view.end).toBeCloseTo(1_002_000);
});

test("a trace of one instant has a window", () => {
  const range = nonEmpty({ start: 5, end: 5 });
  expect(spanOf(range)).toBe(1);
  expect(spanOf(clamp({ start: 0, end: 100 }, range))).toBeCloseTo(1.25);
});

test("going to a slice leaves room at both sides", () => {
  const target = { start: 500_000, end: 510_000 };
  const view = around(target, RANGE);
  expect(contains(view, target)).toBe(true);
  expect(spanOf(view)).toBeCloseTo(17_000);
});

test("what a picture leaves open", () => {
  const range = { start: 0, end: 10 };
  expect(without(range, { start: 2, end: 5 })).toEqual([{ start: 0, end: 2 }, { start: 5, end: 10 }]);
  expect(without(range, { start: -1, end: 11 })).toEqual([]);
  expect(without(range, { start: 20, end: 30 })).toEqual([range]);
});
