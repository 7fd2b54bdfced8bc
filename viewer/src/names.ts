// The trace's names, by id. They arrive as the server reads them.

import { getNames } from "./api";
import { printable } from "./format";
import { NO_NAME } from "./tiles";

export class Names {
  private readonly list: string[] = [];
  private loading: Promise<void> | null = null;

  /** The name as the trace has it, or null if there is none (yet). */
  raw(id: number): string | null {
    return id === NO_NAME ? null : (this.list[id] ?? null);
  }

  /** The name as it is shown. */
  shown(id: number): string {
    const name = this.raw(id);
    return name === null ? (id === NO_NAME ? "" : `name ${id}`) : name === "" ? "(no name)" : printable(name);
  }

  get size(): number {
    return this.list.length;
  }

  /** Asks for names that are not here yet; one request at a time. */
  load(): Promise<void> {
    this.loading ??= getNames(this.list.length)
      .then((names) => {
        for (const name of names) this.list.push(name);
      })
      .finally(() => {
        this.loading = null;
      });
    return this.loading;
  }
}
