import { describe, expect, it } from "vitest";
import { mix } from "../../src/colors";
import { Batch } from "../../src/render/batch";
import { fillPixels } from "../../src/render/painters";

const GROUND = 0xffffffff;
const [RED, BLUE] = [0xff0000ff, 0xffff0000];

/** A picture of 60 by 4 pixels as text: a letter a color. */
function drawn(fill: (batch: Batch) => void): string[] {
  const batch = new Batch();
  fill(batch);
  const pixels = new Uint32Array(60 * 4).fill(7);
  fillPixels(pixels, 60, 4, batch, GROUND);
  const letter = (color: number): string => (color === GROUND ? "." : color === RED ? "r" : color === BLUE ? "b" : "?");
  return [0, 1, 2, 3].map((row) => Array.from(pixels.subarray(row * 60, row * 60 + 60), letter).join("").replace(/\.+$/, ""));
}

describe("pixels", () => {
  it("covers what was there, narrow and wide", () => {
    expect(drawn((batch) => {
      batch.push(0, 0, 40, 2, RED);
      batch.push(2, 1, 3, 3, BLUE);
    })).toEqual(["r".repeat(40), `rrbbb${"r".repeat(35)}`, "..bbb", "..bbb"]);
  });

  it("stays inside the picture", () => {
    expect(drawn((batch) => {
      batch.push(-5, -1, 7, 2, RED);
      batch.push(58, 3, 100, 100, BLUE);
      batch.push(70, 0, 5, 4, RED);
      batch.push(0, -9, 60, 5, RED);
    })).toEqual(["rr", "", "", `${".".repeat(58)}bb`]);
  });

  it("fills an aggregate from below, and the rest faintly", () => {
    const pixels = new Uint32Array(4);
    const batch = new Batch();
    batch.push(0, 0, 1, 4, RED, 64);
    fillPixels(pixels, 1, 4, batch, GROUND);
    expect([...pixels]).toEqual([...Array<number>(3).fill(mix(RED, GROUND, 0.22)), RED]);
  });

  it("draws between pixels as the canvas does: at the nearest", () => {
    expect(drawn((batch) => batch.push(0.6, 0.4, 1.8, 1.2, RED))).toEqual([".r", ".r", "", ""]);
  });
});
