import { expect, test } from "vitest";
import { parseJson } from "../../src/json";
import { readSql, type SqlAnswer } from "../../src/model";
import { chartOf, placesOf } from "../../src/sqlrows";
import { compare } from "../../src/ui/DataTable";

function answer(columns: string[], rows: SqlAnswer["rows"]): SqlAnswer {
  return { columns: columns.map((name) => ({ name, type: "" })), rows, diagnostics: [], elapsedMs: null, truncated: false };
}

test("rows with a start lead to the timeline", () => {
  const places = placesOf(answer(["track", "start", "duration"], []), 0n);
  expect(places?.([3, 100, 20])).toEqual({ start: 100, end: 120, track: 3, depth: null });
  expect(places?.([3, null, 20])).toBeNull();
  expect(placesOf(answer(["name", "count"], []), 0n)).toBeNull();
});

test("times that a double cannot hold lead to the axis that begins near them", () => {
  const places = placesOf(answer(["start", "end"], []), 1_795_551_960_713_185_094n);
  expect(places?.([1_795_551_960_713_185_095n, 1_795_551_960_713_185_155n])).toEqual({ start: 1, end: 61, track: null, depth: null });
});

test("names and numbers make bars, two numbers a line in order of x", () => {
  expect(chartOf(answer(["name", "n"], [["a", 1], ["b", 2]]), null)).toMatchObject({ kind: "bars", labels: ["a", "b"], y: [1, 2] });
  expect(chartOf(answer(["x", "y"], [[2, 5], [1, 7]]), null)).toMatchObject({ kind: "line", x: [1, 2], y: [7, 5] });
  expect(chartOf(answer(["name"], [["a"], ["b"]]), null)).toBeNull();
  expect(chartOf(answer(["n"], [[1]]), null)).toBeNull();
});

test("integers keep their digits where the browser gives access to them", () => {
  const exact = readSql(parseJson('{"columns":[{"name":"a","type":"UInt64"}],"rows":[[18446744073709551615]]}')).rows[0]?.[0];
  // Node before 21 has no access to the source text; Chromium has.
  expect([2n ** 64n - 1n, 2 ** 64]).toContain(exact);
});

test("an answer of another shape is an error with the field's name", () => {
  expect(() => readSql(parseJson('{"columns":1}'))).toThrow("sql.columns");
});

test("tables sort numbers as numbers and put null first", () => {
  expect([10, 9n, null, 2].sort(compare)).toEqual([null, 2, 9n, 10]);
  expect(["b", "a"].sort(compare)).toEqual(["a", "b"]);
});
