import { expect, test } from "vitest";
import { colorOf, css, hashName, PALETTES, type Theme } from "../../src/colors";

/** Relative luminance (WCAG 2.2). */
function luminance(color: number): number {
  const part = (shift: number): number => {
    const value = ((color >> shift) & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(0) + 0.7152 * part(8) + 0.0722 * part(16);
}

test("a name has the same color at every start", () => {
  expect(hashName("main")).toBe(hashName("main"));
  expect(css(colorOf("main", "light"))).toMatchInlineSnapshot(`"rgba(200,190,131,1.000)"`);
});

test("names spread over all colors", () => {
  for (const theme of ["light", "dark"] as const) {
    const counts = new Map<number, number>();
    for (let i = 0; i < 9000; i++) counts.set(colorOf(`function_${i}`, theme), (counts.get(colorOf(`function_${i}`, theme)) ?? 0) + 1);
    expect(counts.size).toBe(PALETTES[theme].length);
    expect(Math.max(...counts.values())).toBeLessThan((9000 / PALETTES[theme].length) * 1.3);
  }
});

test("text on every color has a contrast of at least 4.5", () => {
  const texts: Record<Theme, number> = { light: 0.0075, dark: 0.0035 };
  for (const theme of ["light", "dark"] as const) {
    for (const color of PALETTES[theme]) expect((luminance(color) + 0.05) / (texts[theme] + 0.05)).toBeGreaterThan(4.5);
  }
});

test("a name of a megabyte costs no more than its beginning", () => {
  expect(hashName("x".repeat(1_000_000))).toBe(hashName("x".repeat(512)));
});
