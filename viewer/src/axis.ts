// The ticks of the time axis.

import type { Range } from "./model";
import type { Clock } from "./format";

export interface Ticks {
  /** Distance of two labeled ticks, in the trace's unit. */
  step: number;
  /** Number of parts between two labeled ticks. */
  parts: number;
  values: number[];
}

/** Ticks at round distances (1, 2 or 5 times a power of ten), at least `spacing` pixels apart. */
export function ticksOf(view: Range, px: number, spacing: number, clock: Clock): Ticks {
  const span = view.end - view.start;
  if (!(span > 0) || !(px > 0)) return { step: 1, parts: 1, values: [] };
  const factor = clock.nsPerUnit ?? 1;
  const wanted = Math.max((span * spacing * factor) / px, clock.unit === "seq" ? 1 : 1e-3);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const lead = [1, 2, 5, 10].find((candidate) => candidate * power >= wanted * (1 - 1e-9)) ?? 10;
  const step = (lead * power) / factor;
  const origin = clock.unit === "seq" ? 0 : clock.origin;
  const first = Math.ceil((view.start - origin) / step - 1e-9);
  const last = Math.floor((view.end - origin) / step + 1e-9);
  const values: number[] = [];
  // The spacing bounds the number of ticks; the other bound is for spans at the end of a double's precision.
  for (let i = first; i <= last && values.length < 1000; i++) values.push(origin + i * step);
  return { step, parts: lead === 2 ? 4 : 5, values };
}
