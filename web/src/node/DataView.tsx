import { ExactNumber, isObject, printJson, type Json, type JsonObject, type MeshNode } from "@hubmesh/client";
import { useMemo, useState } from "preact/hooks";
import { isPlace } from "../app/place.ts";
import { highlight } from "../document/highlight.ts";

/** Levels that are open at first. */
const openLevels = 2;
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
  const table = (
    <dl class="members">
      {entries.map(([name, member]) => (
        <div key={name} class={isNested(member) ? "member nested" : "member"}>
          <dt>{name}</dt>
          <dd><Value value={member} depth={depth + 1} /></dd>
        </div>
      ))}
    </dl>
  );
  if (depth === 0) return table;
  return <details open={depth < openLevels}><summary>{entries.length === 1 ? "1 member" : `${entries.length} members`}</summary>{table}</details>;
}

function Items({ items, depth }: { items: Json[]; depth: number }) {
  const [shown, setShown] = useState(firstItems);
  if (items.length === 0) return <span class="muted">none</span>;
  const more = items.length > shown && <button type="button" class="button small quiet" onClick={() => setShown(shown * 10)}>Show more of {items.length}</button>;
  if (!items.some(isNested)) {
    return <ul class="items">{items.slice(0, shown).map((item, n) => <li key={n}><Scalar value={item} /></li>)}{more}</ul>;
  }
  const columns = columnsOf(items);
  if (columns !== undefined) {
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
  return (
    <details open={depth < openLevels}>
      <summary>{items.length === 1 ? "1 item" : `${items.length} items`}</summary>
      <ol class="item-list">{items.slice(0, shown).map((item, n) => <li key={n}><Value value={item} depth={depth + 1} /></li>)}</ol>
      {more}
    </details>
  );
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
  if (/^(https?:\/\/|mailto:)\S+$/.test(value)) return <a href={value} target="_blank" rel="noopener noreferrer">{value}</a>;
  if (/^\/[^\s/]\S*$/.test(value)) return <a href={value} target={isPlace(new URL(value, location.origin), location.origin) ? undefined : "_blank"}>{value}</a>;
  return <span class={value.includes("\n") ? "scalar text multiline" : "scalar text"}>{value}</span>;
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
