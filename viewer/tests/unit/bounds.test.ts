import { expect, test } from "vitest";
import { boundsOf } from "../../src/state/controller";
import type { Trace } from "../../src/model";

const trace = (part: Partial<Trace>): Trace & { range: { start: number; end: number } } => ({ unit: "ns", ticksPerSecond: null, wallStartNs: null, origin: 1_000_000n, range: { start: 100, end: 900 }, ...part }) as Trace & { range: { start: number; end: number } };

test("a window is where the trace's own times or nanoseconds from its start say", () => {
  expect(boundsOf({ from: { unit: "ns", value: 50 }, to: null }, trace({}))).toEqual({ start: 150, end: 900 });
  expect(boundsOf({ from: null, to: { unit: "own", value: 1_000_500 } }, trace({}))).toEqual({ start: 100, end: 500 });
  // Two ticks a nanosecond.
  expect(boundsOf({ from: { unit: "ns", value: 50 }, to: { unit: "ns", value: 60 } }, trace({ unit: "tick", ticksPerSecond: 2e9 }))).toEqual({ start: 200, end: 220 });
});
