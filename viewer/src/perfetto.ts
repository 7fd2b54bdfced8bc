// Hands a window of the trace to Perfetto's own page in another tab: https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui.
// The page is asked whether it is ready until it answers, and then gets the bytes; nothing goes over the network but the
// page itself.

import { exportPath, loadBytes } from "./api";
import type { Range } from "./model";

export const PERFETTO = "https://ui.perfetto.dev";
/** What Perfetto's page takes without trouble: it needs several times that in memory. */
export const BYTES_MAX = 512 * 1024 * 1024;
const ASK_EVERY_MS = 50;
const ASK_MAX_MS = 60_000;

/** The window as a Perfetto trace. */
export function loadWindow(range: Range, signal: AbortSignal): Promise<ArrayBuffer> {
  return loadBytes(exportPath("perfetto", range), BYTES_MAX, signal);
}

/** What of a browser's window is needed here. */
export interface Page {
  postMessage(message: unknown, origin: string): void;
  readonly closed: boolean;
}

type Listen = (take: (event: { source: unknown; origin: string; data: unknown }) => void) => () => void;

const listenHere: Listen = (take) => {
  window.addEventListener("message", take);
  return () => window.removeEventListener("message", take);
};

/** Gives the bytes to a tab as soon as it says that it is ready. */
export function handOver(page: Page, buffer: ArrayBuffer, title: string, listen: Listen = listenHere): Promise<void> {
  return new Promise((resolve, reject) => {
    const began = Date.now();
    const stop = (): void => {
      clearInterval(timer);
      unlisten();
    };
    const unlisten = listen((event) => {
      if (event.source !== page || event.origin !== PERFETTO || event.data !== "PONG") return;
      stop();
      page.postMessage({ perfetto: { buffer, title, keepApiOpen: false } }, PERFETTO);
      resolve();
    });
    const timer = setInterval(() => {
      if (page.closed || Date.now() - began > ASK_MAX_MS) {
        stop();
        reject(new Error(page.closed ? "Perfetto's tab was closed" : `${PERFETTO} does not answer`));
      } else page.postMessage("PING", PERFETTO);
    }, ASK_EVERY_MS);
  });
}
