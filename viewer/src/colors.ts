// Colors by name: the same name has the same color in every trace and window.
//
// The hues are Paul Tol's "light" scheme (Colour Schemes, SRON/EPS/TN/09-002, 2021), made as backgrounds of black text
// and distinct for the common forms of color blindness; each comes in two strengths.

export type Theme = "light" | "dark";

const HUES = ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#c3b878", "#b9a7d9"];

/** Of each theme: how much of the hue its two strengths keep, and what they are mixed with. */
const STRENGTHS: Record<Theme, { shares: [number, number]; ground: [number, number, number] }> = {
  light: { shares: [0.92, 0.62], ground: [255, 255, 255] },
  dark: { shares: [0.86, 0.7], ground: [26, 32, 42] },
};

function channels(hex: string): [number, number, number] {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** A color as the painter takes it: bytes red, green, blue, alpha from the lowest. */
export function pack(red: number, green: number, blue: number, alpha = 255): number {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function css(color: number): string {
  return `rgba(${color & 255},${(color >> 8) & 255},${(color >> 16) & 255},${((color >>> 24) / 255).toFixed(3)})`;
}

export function mix(color: number, ground: number, share: number): number {
  const part = (shift: number): number => Math.round(((color >> shift) & 255) * share + ((ground >> shift) & 255) * (1 - share));
  return pack(part(0), part(8), part(16));
}

function build(theme: Theme): readonly number[] {
  const { shares, ground } = STRENGTHS[theme];
  const base = pack(...ground);
  return shares.flatMap((share) => HUES.map((hue) => mix(pack(...channels(hue)), base, share)));
}

export const PALETTES: Record<Theme, readonly number[]> = { light: build("light"), dark: build("dark") };

/** What the painter needs besides the palette. */
export interface Grounds {
  background: number;
  unnamed: number;
  text: string;
  faint: string;
}

export const GROUNDS: Record<Theme, Grounds> = {
  light: { background: pack(255, 255, 255), unnamed: pack(176, 184, 196), text: "#10151c", faint: "#5b6675" },
  dark: { background: pack(19, 24, 32), unnamed: pack(96, 106, 122), text: "#0b0f15", faint: "#93a0b3" },
};

/** FNV-1a over the UTF-16 units of the first 512 characters. */
export function hashName(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length && i < 512; i++) {
    hash ^= name.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  // The low bits of FNV are weak; the palette's size takes the rest by division.
  return (hash ^ (hash >>> 15)) >>> 0;
}

export function colorOf(name: string, theme: Theme): number {
  const palette = PALETTES[theme];
  return palette[hashName(name) % palette.length] as number;
}
