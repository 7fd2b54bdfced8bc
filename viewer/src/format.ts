// Numbers and names as a person reads them.

import type { Unit } from "./model";

/** How times of a trace are shown. */
export interface Clock {
  unit: Unit;
  /** Nanoseconds a unit; null where the trace has no clock. */
  nsPerUnit: number | null;
  /** The trace's first time: the axis counts from it. */
  origin: number;
  wallStartNs: bigint | null;
}

const SCALES: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

const THIN_SPACE = "\u2009";

export function formatCount(value: number | bigint): string {
  if (typeof value === "number" && !Number.isFinite(value)) return "–";
  return (typeof value === "number" ? Math.round(value) : value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** A count in at most five characters: 12.3k, 4.56M. */
export function formatShortCount(value: number): string {
  if (value < 10_000) return formatCount(value);
  for (const [scale, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (value >= scale) return threeDigits(value / scale) + name;
  }
  return String(value);
}

function threeDigits(value: number): string {
  if (value >= 100) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}

export function formatBytes(bytes: number): string {
  for (const [scale, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]] as const) {
    if (bytes >= scale) return `${threeDigits(bytes / scale)} ${name}`;
  }
  return `${bytes} B`;
}

export function formatPercent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  return `${(share * 100).toFixed(1)} %`;
}

/** A duration with three or four digits that count and its unit. */
export function formatDuration(value: number, clock: Clock): string {
  if (clock.unit === "seq") return formatCount(value);
  if (clock.nsPerUnit === null) return `${formatCount(value)} ticks`;
  const ns = value * clock.nsPerUnit;
  const size = Math.abs(ns);
  if (size === 0) return "0";
  for (const [scale, name] of SCALES) {
    if (size >= scale) return `${scale === 1 ? trimmed(ns) : (ns / scale).toFixed(size / scale >= 100 ? 1 : size / scale >= 10 ? 2 : 3)} ${name}`;
  }
  return `${trimmed(ns)} ns`;
}

const UNITS: Record<string, number> = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 };

/** A length that a person typed: a number, with a unit where lengths are nanoseconds. Nothing is 0. */
export function readLength(text: string, hasUnit: boolean): number | null {
  const plain = text.replaceAll(/[\s,+\u202f\u00a0]/gu, "").replace(/^\u2212/u, "-");
  if (plain === "") return 0;
  const [, number = "", unit = ""] = /^(-?[\d.]+(?:e-?\d+)?)([a-zµ]*)$/iu.exec(plain) ?? [];
  const scale = hasUnit ? UNITS[unit === "" ? "ns" : unit.toLowerCase()] : unit === "" || unit === "ticks" ? 1 : undefined;
  const value = number === "" ? Number.NaN : Number(number) * (scale ?? Number.NaN);
  return Number.isFinite(value) ? value : null;
}

function trimmed(ns: number): string {
  return Number.isInteger(ns) ? String(ns) : ns.toFixed(2);
}

/** A duration in the same unit for a column, so that the decimal points of its rows align. */
export function columnScale(largest: number, clock: Clock): { name: string; format: (value: number) => string } {
  if (clock.unit === "seq") return { name: "", format: formatCount };
  if (clock.nsPerUnit === null) return { name: "ticks", format: formatCount };
  const factor = clock.nsPerUnit;
  const [scale, name] = SCALES.find(([size]) => largest * factor >= size) ?? [1, "ns"];
  const digits = scale === 1 ? 0 : 3;
  return { name, format: (value) => grouped(((value * factor) / scale).toFixed(digits)) };
}

function grouped(text: string): string {
  const [whole = "", rest] = text.split(".");
  const left = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? left : `${left}.${rest}`;
}

/** A time since the trace's start, with as many decimals as `step` needs. */
export function formatTime(value: number, step: number, clock: Clock): string {
  if (clock.unit === "seq") return `#${formatCount(value)}`;
  if (clock.nsPerUnit === null) return formatCount(value - clock.origin);
  const ns = (value - clock.origin) * clock.nsPerUnit;
  const stepNs = step * clock.nsPerUnit;
  const size = Math.max(Math.abs(ns), stepNs);
  const [scale, name] = SCALES.find(([bound]) => size >= bound) ?? [1, "ns"];
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(scale / stepNs) - 1e-9)));
  const text = (ns / scale).toFixed(digits);
  const [whole = "", decimals = ""] = text.split(".");
  const left = whole.replace(/\B(?=(\d{3})+(?!\d))/g, THIN_SPACE);
  const right = decimals.replace(/(\d{3})(?=\d)/g, `$1${THIN_SPACE}`);
  return `${left}${right === "" ? "" : `.${right}`} ${name}`;
}

/** The wall-clock time of an instant, in UTC, or null where the trace has none. */
export function formatWall(value: number, clock: Clock): string | null {
  if (clock.wallStartNs === null || clock.nsPerUnit === null) return null;
  const ns = clock.wallStartNs + BigInt(Math.round((value - clock.origin) * clock.nsPerUnit));
  const date = new Date(Number(ns / 1_000_000n));
  if (Number.isNaN(date.getTime())) return null;
  const rest = ((ns % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  return `${date.toISOString().slice(0, 19).replace("T", " ")}.${rest.toString().padStart(9, "0")} UTC`;
}

/** Longer than this, a name is cut before it is drawn: names come from the trace and may have a megabyte. */
const NAME_CHARACTERS_MAX = 300;

/**
 * A name from a trace as it is safe to show: control characters and those that change the direction of text become
 * visible, so that a name cannot imitate its surroundings.
 */
export function printable(name: string, max = NAME_CHARACTERS_MAX): string {
  const cut = name.length > max ? `${name.slice(0, max)}…` : name;
  return cut.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/gu, escaped);
}

function escaped(character: string): string {
  const code = character.charCodeAt(0);
  return `\\u{${code.toString(16)}}`;
}
