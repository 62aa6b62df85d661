import { ExactNumber, isObject, printJson, type Json, type JsonObject, type MeshNode } from "@hubmesh/client";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { isPlace } from "../app/place.ts";
import { highlight } from "../document/highlight.ts";

/** Levels that are open at first. */
const openLevels = 2;
/** Levels at which arrays are drawn as tables, which can not be closed. */
const tableLevels = 6;
/** Items of an array that are drawn at first. */
const firstItems = 100;

/** JSON for people: a table of members, arrays of like objects as tables, deeper levels to open. */
export function DataView({ value }: { value: Json }) {
  return <div class="data"><Value value={value} depth={0} /></div>;
}

function Value({ value, depth }: { value: Json; depth: number }) {
  if (Array.isArray(value)) return <Items items={value} depth={depth} />;
  if (isObject(value)) return <Members value={value} depth={depth} />;
  return <Scalar value={value} />;
}

function Members({ value, depth }: { value: JsonObject; depth: number }) {
  const entries = Object.entries(value);
  if (entries.length === 0) return <span class="muted">empty</span>;
  const members = () => (
    <dl class="members">
      {entries.map(([name, member]) => (
        <div key={name} class={isNested(member) ? "member nested" : "member"}>
          <dt>{name}</dt>
          <dd><Value value={member} depth={depth + 1} /></dd>
        </div>
      ))}
    </dl>
  );
  if (depth === 0) return members();
  return <Level depth={depth} summary={entries.length === 1 ? "1 member" : `${entries.length} members`} inside={members} />;
}

/** A level to open. What is inside is made once it has been: contents may nest deeper than a page can be drawn at once. */
function Level({ depth, summary, inside }: { depth: number; summary: string; inside: () => ComponentChildren }) {
  const [open, setOpen] = useState(depth < openLevels);
  return <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}><summary>{summary}</summary>{open && inside()}</details>;
}

function Items({ items, depth }: { items: Json[]; depth: number }) {
  const [shown, setShown] = useState(firstItems);
  if (items.length === 0) return <span class="muted">none</span>;
  const more = items.length > shown && <button type="button" class="button small quiet" onClick={() => setShown(shown * 10)}>Show more of {items.length}</button>;
  if (!items.some(isNested)) {
    return <ul class="items">{items.slice(0, shown).map((item, n) => <li key={n}><Scalar value={item} /></li>)}{more}</ul>;
  }
  const columns = columnsOf(items);
  if (columns !== undefined && depth < tableLevels) {
    return (
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead><tr>{columns.map((column) => <th key={column} scope="col">{column}</th>)}</tr></thead>
          <tbody>
            {items.slice(0, shown).map((item, n) => (
              <tr key={n}>{columns.map((column) => <td key={column}>{isObject(item) && item[column] !== undefined ? <Value value={item[column]} depth={depth + 2} /> : null}</td>)}</tr>
            ))}
          </tbody>
        </table>
        {more}
      </div>
    );
  }
  const list = () => <><ol class="item-list">{items.slice(0, shown).map((item, n) => <li key={n}><Value value={item} depth={depth + 1} /></li>)}</ol>{more}</>;
  return <Level depth={depth} summary={items.length === 1 ? "1 item" : `${items.length} items`} inside={list} />;
}

/** The columns of an array of objects that are alike; undefined when they are not, or too many. */
export function columnsOf(items: readonly Json[]): string[] | undefined {
  if (!items.every(isObject)) return undefined;
  const columns = [...new Set(items.flatMap((item) => Object.keys(item as JsonObject)))];
  return columns.length > 0 && columns.length <= 8 ? columns : undefined;
}

function isNested(value: Json): boolean {
  return value !== null && typeof value === "object" && !(value instanceof ExactNumber) && Object.keys(value).length > 0;
}

function Scalar({ value }: { value: Json }) {
  if (value === null) return <span class="scalar null">null</span>;
  if (typeof value === "boolean") return <span class="scalar boolean">{value ? "true" : "false"}</span>;
  if (typeof value === "number" || value instanceof ExactNumber) return <span class="scalar number">{value.toString()}</span>;
  if (typeof value !== "string") return <span class="muted">{JSON.stringify(value)}</span>;
  if (value === "") return <span class="muted">“”</span>;
  if (/^(https?:\/\/|mailto:)\S+$/.test(value) && URL.canParse(value)) return <a href={value} target="_blank" rel="noopener noreferrer">{value}</a>;
  const here = urlOf(value);
  if (here !== undefined) return <a href={value} target={isPlace(here, location.origin) ? undefined : "_blank"}>{value}</a>;
  return <span class={value.includes("\n") ? "scalar text multiline" : "scalar text"}>{value}</span>;
}

/** What a text that begins with a slash leads to on this server; undefined where that is no URL, or one elsewhere. */
export function urlOf(text: string, origin = location.origin): URL | undefined {
  if (!/^\/[^\s/\\]\S*$/.test(text) || !URL.canParse(text, origin)) return undefined;
  const url = new URL(text, origin);
  return url.origin === origin ? url : undefined;
}

/** The whole node as it is stored. */
export function DataTab({ node }: { node: MeshNode }) {
  const text = useMemo(() => printJson(node, 2), [node]);
  const pieces = useMemo(() => highlight(text, "json") ?? [{ text }], [text]);
  const [copied, setCopied] = useState(false);
  return (
    <div class="document raw">
      <pre class="code" tabIndex={0} data-language="json">
        <code>{pieces.map(({ text: piece, kind }, n) => (kind === undefined ? piece : <span key={n} class={`hl-${kind}`}>{piece}</span>))}</code>
        <button type="button" class="copy" onClick={() => void navigator.clipboard?.writeText(text).then(() => setCopied(true))}>{copied ? "Copied" : "Copy"}</button>
      </pre>
    </div>
  );
}
