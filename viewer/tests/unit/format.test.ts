import { expect, test } from "vitest";
import { columnScale, formatBytes, formatCount, formatDuration, formatPercent, formatShortCount, formatTime, formatWall, printable, readLength, type Clock } from "../../src/format";

const NS: Clock = { unit: "ns", nsPerUnit: 1, origin: 1000, wallStartNs: null };

test("a length is read as people type it and as it is shown", () => {
  expect([readLength("1.5ms", true), readLength("-20 µs", true), readLength("7", true), readLength("", true)]).toEqual([1.5e6, -20_000, 7, 0]);
  expect([readLength("1,234 ticks", false), readLength("+12", false), readLength("3ms", false)]).toEqual([1234, 12, null]);
  for (const wrong of ["x", "1.5 parsec", "--3", "1e999", "ms"]) expect(readLength(wrong, true)).toBeNull();
});

test("durations have the unit that fits", () => {
  expect(formatDuration(0, NS)).toBe("0");
  expect(formatDuration(7, NS)).toBe("7 ns");
  expect(formatDuration(1234, NS)).toBe("1.234 µs");
  expect(formatDuration(12_345, NS)).toBe("12.35 µs");
  expect(formatDuration(4.2e9, NS)).toBe("4.200 s");
  expect(formatDuration(-1500, NS)).toBe("-1.500 µs");
});

test("ticks without a frequency and records stay what they are", () => {
  expect(formatDuration(12_345, { ...NS, unit: "tick", nsPerUnit: null })).toBe("12,345 ticks");
  expect(formatDuration(12_345, { ...NS, unit: "seq", nsPerUnit: null })).toBe("12,345");
});

test("times count from the start and have the decimals of the step", () => {
  expect(formatTime(1000, 100, NS)).toBe("0 ns");
  expect(formatTime(1000 + 1_234_567_000, 1000, NS)).toBe("1.234\u2009567 s");
  expect(formatTime(1000 + 2_500_000, 500_000, NS)).toBe("2.5 ms");
  expect(formatTime(12_345, 1, { ...NS, unit: "seq", nsPerUnit: null })).toBe("#12,345");
});

test("wall-clock times keep nanoseconds", () => {
  const clock = { ...NS, wallStartNs: 1_700_000_000_123_456_789n };
  expect(formatWall(1001, clock)).toBe("2023-11-14 22:13:20.123456790 UTC");
  expect(formatWall(1001, NS)).toBeNull();
});

test("a column has one unit", () => {
  const scale = columnScale(2_000_000, NS);
  expect(scale.name).toBe("ms");
  expect([2_000_000, 1500].map(scale.format)).toEqual(["2.000", "0.002"]);
  expect(columnScale(3.5e12, NS).format(3.5e12)).toBe("3,500.000");
});

test("counts are grouped and shortened", () => {
  expect(formatCount(1_234_567)).toBe("1,234,567");
  expect(formatCount(2n ** 64n)).toBe("18,446,744,073,709,551,616");
  expect([9_999, 12_345, 4_560_000].map(formatShortCount)).toEqual(["9,999", "12.3k", "4.56M"]);
  expect(formatBytes(48_123_456)).toBe("48.1 MB");
  expect(formatPercent(0.256)).toBe("25.6 %");
  expect(formatPercent(Number.NaN)).toBe("–");
});

test("names cannot imitate their surroundings", () => {
  expect(printable("a\u202eb\u0000c\nd")).toBe("a\\u{202e}b\\u{0}c\\u{a}d");
  expect(printable("x".repeat(1_000_000)).length).toBe(301);
  expect(printable("\ud800!")).toBe("\\u{d800}!");
  expect(printable("größe 😀 <b>")).toBe("größe 😀 <b>");
});
