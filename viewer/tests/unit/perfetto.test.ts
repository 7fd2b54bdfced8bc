import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { handOver, PERFETTO, type Page } from "../../src/perfetto";

type Take = (event: { source: unknown; origin: string; data: unknown }) => void;

/** A tab, what it was sent, and how it answers. */
function tab(): { page: Page & { closed: boolean }; sent: [unknown, string][]; listen: (take: Take) => () => void; say: (data: unknown, origin?: string, source?: unknown) => void; listeners: () => number } {
  const sent: [unknown, string][] = [];
  const takes = new Set<Take>();
  const page = { closed: false, postMessage: (message: unknown, origin: string) => void sent.push([message, origin]) };
  const listen = (take: Take) => {
    takes.add(take);
    return () => void takes.delete(take);
  };
  const say = (data: unknown, origin = PERFETTO, source: unknown = page): void => takes.forEach((take) => take({ source, origin, data }));
  return { page, sent, listen, say, listeners: () => takes.size };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("the trace is sent once, when the page is ready, and to nobody else", async () => {
  const { page, sent, listen, say, listeners } = tab();
  const buffer = new ArrayBuffer(8);
  const done = handOver(page, buffer, "a.xray", listen);
  vi.advanceTimersByTime(120);
  expect(sent).toEqual([["PING", PERFETTO], ["PING", PERFETTO]]);
  say("PONG", "https://evil.example");
  say("PONG", PERFETTO, {});
  say("PING");
  expect(sent.length).toBe(2);
  say("PONG");
  say("PONG");
  await done;
  expect(sent.slice(2)).toEqual([[{ perfetto: { buffer, title: "a.xray", keepApiOpen: false } }, PERFETTO]]);
  vi.advanceTimersByTime(1000);
  expect([sent.length, listeners()]).toEqual([3, 0]);
});

test("a tab that is closed, and one that never answers, end the waiting", async () => {
  const { page, listen, listeners } = tab();
  const closed = expect(handOver(page, new ArrayBuffer(1), "", listen)).rejects.toThrow("closed");
  page.closed = true;
  vi.advanceTimersByTime(60);
  await closed;
  const silent = tab();
  const late = expect(handOver(silent.page, new ArrayBuffer(1), "", silent.listen)).rejects.toThrow("does not answer");
  vi.advanceTimersByTime(61_000);
  await late;
  expect([listeners(), silent.listeners()]).toEqual([0, 0]);
});
