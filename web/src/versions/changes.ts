import { equalJson, printJson, writableFields, type Json, type MeshNode } from "@hubmesh/client";
import { bodyOf, bodyText } from "../edit/fields.ts";
import { diff, lines } from "../text/diff.ts";

/** A line of a comparison: a field's heading, a line of its text, or a gap of lines that did not change. */
export interface Line {
  kind: "head" | "added" | "removed" | "same" | "gap";
  text: string;
}

/** Lines shown around a change. */
const context = 3;

/** What differs from one version of a node to another, field by field. */
export function changesOf(from: MeshNode, to: MeshNode): Line[] {
  const out: Line[] = [];
  for (const field of writableFields) {
    const [a, b] = [from[field] as Json | undefined, to[field] as Json | undefined];
    if (equalJson(a, b)) continue;
    out.push({ kind: "head", text: field }, ...lineChanges(textOf(from, field), textOf(to, field)));
  }
  return out;
}

function textOf(node: MeshNode, field: (typeof writableFields)[number]): string {
  const value = node[field];
  if (value === undefined) return "";
  if (field !== "content") return typeof value === "string" ? value : printJson(value);
  const body = bodyOf(node);
  if (body.kind === "json") return bodyText(node, body);
  // The text of a document is compared as text, beside whatever else the content holds.
  const others = Object.entries(node.content as Record<string, Json>).filter(([name]) => name !== body.member && name !== "$type");
  const rest = others.length === 0 ? "" : `${printJson(Object.fromEntries(others), 2)}\n`;
  return rest + bodyText(node, body);
}

export function lineChanges(from: string, to: string): Line[] {
  const [a, b] = [lines(from), lines(to)];
  const out: Line[] = [];
  const hunks = diff(a, b);
  const strip = (line: string): string => line.replace(/\n$/, "");
  hunks.forEach((hunk, n) => {
    const previous = hunks[n - 1]?.a1 ?? 0;
    const start = Math.max(previous + (n === 0 ? 0 : context), hunk.a0 - context);
    if (start > previous + (n === 0 ? 0 : context)) out.push({ kind: "gap", text: `${start - previous - (n === 0 ? 0 : context)} lines` });
    for (const line of a.slice(Math.min(start, hunk.a0), hunk.a0)) out.push({ kind: "same", text: strip(line) });
    for (const line of a.slice(hunk.a0, hunk.a1)) out.push({ kind: "removed", text: strip(line) });
    for (const line of b.slice(hunk.b0, hunk.b1)) out.push({ kind: "added", text: strip(line) });
    const next = hunks[n + 1]?.a0 ?? a.length;
    for (const line of a.slice(hunk.a1, Math.min(next, hunk.a1 + context))) out.push({ kind: "same", text: strip(line) });
    if (n === hunks.length - 1 && next > hunk.a1 + context) out.push({ kind: "gap", text: `${next - hunk.a1 - context} lines` });
  });
  return out;
}
