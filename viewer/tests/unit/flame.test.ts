import { expect, test } from "vitest";
import { layFlame, pathTo } from "../../src/flame";
import { readFlame, type FlameNode } from "../../src/model";

function node(name: string, total: number, children: FlameNode[] = []): FlameNode {
  return { name, total, self: total, count: 1, children };
}

test("children lie below their parent in proportion to their time", () => {
  const boxes = layFlame(node("all", 100, [node("a", 60, [node("c", 30)]), node("b", 20)]), []);
  const at = (name: string): [number, number, number] => {
    const box = boxes.find((item) => item.node.name === name);
    return box ? [box.depth, box.from, box.to] : [-1, 0, 0];
  };
  expect(at("a")).toEqual([1, 0, 0.6]);
  expect(at("b")[1]).toBeCloseTo(0.6);
  expect(at("c")).toEqual([2, 0, 0.3]);
});

test("children that exceed their parent share its width", () => {
  const boxes = layFlame(node("all", 10, [node("a", 30), node("b", 10)]), []);
  expect(Math.max(...boxes.map((box) => box.to))).toBeCloseTo(1);
});

test("callers of the widened box stay above it", () => {
  const all = node("all", 10, [node("a", 5)]);
  const boxes = layFlame(all.children[0] as FlameNode, [all]);
  expect(boxes.map((box) => [box.node.name, box.depth, box.to])).toEqual([["all", 0, 1], ["a", 1, 1]]);
  expect(pathTo(boxes[1] as (typeof boxes)[0])).toEqual([all]);
});

test("an answer that is nested without end is cut", () => {
  let deep: { name: string; total: number; self: number; count: number; children: unknown[] } = { name: "x", total: 1, self: 1, count: 1, children: [] };
  for (let i = 0; i < 3000; i++) deep = { name: "x", total: 1, self: 0, count: 1, children: [deep] };
  expect(layFlame(readFlame(deep as never), []).length).toBe(1001);
});
