// Where the boxes of a flame graph lie.

import type { FlameNode } from "./model";

export interface Box {
  node: FlameNode;
  depth: number;
  /** Share of the width: 0 to 1. */
  from: number;
  to: number;
  parent: Box | null;
}

/** Narrower than this share, a box would not be visible. */
const SHARE_MIN = 1 / 8000;
const BOXES_MAX = 50_000;

/** Lays out a node over the full width, its callers above it at full width too. */
export function layFlame(root: FlameNode, path: readonly FlameNode[]): Box[] {
  const boxes: Box[] = [];
  let parent: Box | null = null;
  for (const node of path) {
    const box: Box = { node, depth: boxes.length, from: 0, to: 1, parent };
    boxes.push(box);
    parent = box;
  }
  const top: Box = { node: root, depth: boxes.length, from: 0, to: 1, parent };
  boxes.push(top);
  const open: Box[] = [top];
  for (let next = open.shift(); next !== undefined && boxes.length < BOXES_MAX; next = open.shift()) {
    for (const child of children(next)) {
      boxes.push(child);
      open.push(child);
    }
  }
  return boxes;
}

function children(parent: Box): Box[] {
  const { node } = parent;
  const within = node.children.reduce((sum, child) => sum + child.total, 0);
  // What runs in parallel may sum up to more than its parent: then the children share its width.
  const scale = (parent.to - parent.from) / Math.max(node.total, within, 1e-12);
  const boxes: Box[] = [];
  let from = parent.from;
  for (const child of node.children) {
    const to = from + child.total * scale;
    if (to - from >= SHARE_MIN) boxes.push({ node: child, depth: parent.depth + 1, from, to, parent });
    from = to;
  }
  return boxes;
}

export function pathTo(box: Box): FlameNode[] {
  const path: FlameNode[] = [];
  for (let at = box.parent; at !== null; at = at.parent) path.unshift(at.node);
  return path;
}
