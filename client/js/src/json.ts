import type { Json } from "./types.ts";

/**
 * A number of a JSON text that JavaScript's numbers would not write as it was written: one of more than
 * 53 bits, and spellings such as 1.0. It is kept as text, so that what nobody edits stays what it is.
 */
export class ExactNumber {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** As it was written. */
  toString(): string {
    return this.#text;
  }

  /** The nearest number that JavaScript has. */
  valueOf(): number {
    return Number(this.#text);
  }

  toJSON(): number {
    return Number(this.#text);
  }
}

/** The strings and the numbers of a valid JSON text. */
const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

/** Reads a JSON text and keeps its numbers as they are written. Throws JSON.parse's SyntaxError. */
export function parseJson(text: string): Json {
  const plain = JSON.parse(text) as Json;
  const exact = (token: string): boolean => token[0] !== "\"" && String(Number(token)) !== token;
  if (!(text.match(tokens) ?? []).some(exact)) return plain;
  const mark = unusedIn(text);
  const marked = text.replace(tokens, (token) => (exact(token) ? `"${mark}${token}"` : token));
  return JSON.parse(marked, (_key, value: unknown) => (typeof value === "string" && value.startsWith(mark) ? new ExactNumber(value.slice(mark.length)) : value)) as Json;
}

/** Writes what {@link parseJson} reads; like JSON.stringify, but for the numbers. */
export function printJson(value: unknown, indent?: number): string {
  const found = new Set<string>();
  const plain = JSON.stringify(value, function (this: Record<string, unknown>, key, member: unknown) {
    const held = this[key];
    if (held instanceof ExactNumber) found.add(held.toString());
    return member;
  }, indent);
  if (found.size === 0) return plain;
  const mark = unusedIn(plain);
  const marked = JSON.stringify(value, function (this: Record<string, unknown>, key, member: unknown) {
    const held = this[key];
    return held instanceof ExactNumber ? mark + held.toString() : member;
  }, indent);
  return marked.replace(new RegExp(`"${mark}([^"]*)"`, "g"), "$1");
}

/** Letters that do not stand in a text, nor can come to stand in it by its escapes. */
function unusedIn(text: string): string {
  for (;;) {
    const mark = `exact-${Math.random().toString(36).slice(2)}-${Math.random().toString(36).slice(2)}-`;
    if (!text.includes(mark)) return mark;
  }
}
