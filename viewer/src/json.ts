// Checked reading of JSON: an answer that is not as the contract says is an error with the field's name, never
// `undefined` somewhere in the page.

export type Json = null | boolean | number | bigint | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/** Parses JSON. Integers that a double cannot hold become `bigint`, where the browser gives access to their digits. */
export function parseJson(text: string): Json {
  const exact: Reviver = (_key, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    const source = context?.source;
    return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value;
  };
  return JSON.parse(text, exact) as Json;
}

export class ShapeError extends Error {}

export function asObject(value: Json | undefined, what: string): JsonObject {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new ShapeError(`${what}: expected an object`);
  return value;
}

export function asList(value: Json | undefined, what: string): Json[] {
  if (!Array.isArray(value)) throw new ShapeError(`${what}: expected a list`);
  return value;
}

export function asText(value: Json | undefined, what: string): string {
  if (typeof value !== "string") throw new ShapeError(`${what}: expected text`);
  return value;
}

export function asNumber(value: Json | undefined, what: string): number {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "number") throw new ShapeError(`${what}: expected a number`);
  return value;
}

export function asNumbers(value: Json | undefined, what: string): number[] {
  return asList(value, what).map((item) => asNumber(item, what));
}

export function asTexts(value: Json | undefined, what: string): string[] {
  return asList(value, what).map((item) => asText(item, what));
}

/** The number of a field that may be absent or null. */
export function optionalNumber(value: Json | undefined): number | null {
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" ? value : null;
}

/** The text of a field that may be absent or null; a number becomes its digits. */
export function optionalText(value: Json | undefined): string | null {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  return typeof value === "string" ? value : null;
}

export function optionalList(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

/** A cell of a table as text. */
export function cellText(value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "object") return JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? String(item) : item));
  return String(value);
}
