import { defineConfig } from "vitest/config";

// Node 20 lacks what vitest reports failures with: a failing test would be an error without its name.
const lists = Map as unknown as { groupBy?: unknown };
lists.groupBy ??= <K, T>(items: Iterable<T>, keyOf: (item: T, index: number) => K): Map<K, T[]> => {
  const groups = new Map<K, T[]>();
  let index = 0;
  for (const item of items) {
    const key = keyOf(item, index++);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
};

export default defineConfig({ test: { include: ["tests/unit/**/*.test.ts"], environment: "node" } });
