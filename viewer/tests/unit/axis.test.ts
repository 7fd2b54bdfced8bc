import { expect, test } from "vitest";
import { ticksOf } from "../../src/axis";
import type { Clock } from "../../src/format";

const NS: Clock = { unit: "ns", nsPerUnit: 1, origin: 0, wallStartNs: null };

test("ticks are at multiples of 1, 2 or 5 and at least the spacing apart", () => {
  for (const span of [13, 997, 12_345, 4.2e9, 3.1e13]) {
    const { step, values } = ticksOf({ start: 7, end: 7 + span }, 1000, 100, NS);
    const lead = Number((step / 10 ** Math.floor(Math.log10(step) + 1e-9)).toFixed(6));
    expect([1, 2, 5]).toContain(lead);
    expect((step / span) * 1000).toBeGreaterThanOrEqual(99.9);
    expect(values.length).toBeGreaterThan(1);
    expect(values.every((value) => Math.abs(value / step - Math.round(value / step)) < 1e-6)).toBe(true);
  }
});

test("ticks count from the trace's first time", () => {
  const clock = { ...NS, origin: 123_456_789 };
  expect(ticksOf({ start: 123_456_789, end: 123_457_789 }, 1000, 100, clock).values.slice(0, 3)).toEqual([123_456_789, 123_456_889, 123_456_989]);
});

test("records have ticks at integers", () => {
  const clock: Clock = { unit: "seq", nsPerUnit: null, origin: 0, wallStartNs: null };
  expect(ticksOf({ start: 0.2, end: 3.4 }, 1000, 10, clock).values).toEqual([1, 2, 3]);
});

test("ticks of a clock with a frequency are round in nanoseconds", () => {
  const clock: Clock = { unit: "tick", nsPerUnit: 1 / 3, origin: 0, wallStartNs: null };
  const { step } = ticksOf({ start: 0, end: 3000 }, 1000, 100, clock);
  expect(step / 3).toBeCloseTo(100, 9);
});

test("a window without width has no ticks", () => {
  expect(ticksOf({ start: 5, end: 5 }, 1000, 100, NS).values).toEqual([]);
  expect(ticksOf({ start: 0, end: 5 }, 0, 100, NS).values).toEqual([]);
});
