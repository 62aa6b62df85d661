import { parentPath, type Child, type HubmeshError } from "@hubmesh/client";

/** The tree as the rows that are on the screen: pure, from what is expanded and which children are known. */
export interface NodeRow {
  kind: "node";
  path: string;
  child: Child;
  level: number;
  /** Undefined for a leaf. */
  expanded: boolean | undefined;
  position: number;
  setSize: number;
}
export interface NoteRow {
  kind: "note";
  path: string;
  level: number;
  note: "loading" | "failed" | "empty";
  error: HubmeshError | undefined;
}
export type Row = NodeRow | NoteRow;

export interface Level {
  status: "loading" | "live" | "deleted" | "failed";
  children: readonly Child[];
  error: HubmeshError | undefined;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * The children that are listed, in the order that people expect: by their order, then by what is shown.
 * Ids with a leading "_" are the mesh's own (where files are configured, for example) and left out, as
 * in search; their addresses work all the same.
 */
export function listed(children: readonly Child[]): Child[] {
  return children.filter((child) => !child.id.startsWith("_")).sort((a, b) => {
    const order = (a.order ?? Infinity) - (b.order ?? Infinity);
    return (Number.isNaN(order) ? 0 : order) || collator.compare(labelOf(a), labelOf(b)) || (a.path < b.path ? -1 : 1);
  });
}

export function labelOf(child: { name?: string; id: string }): string {
  return child.name === undefined || child.name === "" ? child.id : child.name;
}

export function rowsOf(expanded: ReadonlySet<string>, levelOf: (path: string) => Level | undefined): Row[] {
  const rows: Row[] = [];
  const add = (path: string, level: number): void => {
    const known = levelOf(path);
    if (known === undefined || (known.status === "loading" && known.children.length === 0)) {
      rows.push({ kind: "note", path, level, note: "loading", error: undefined });
      return;
    }
    if (known.status === "failed" && known.children.length === 0) {
      rows.push({ kind: "note", path, level, note: "failed", error: known.error });
      return;
    }
    if (known.children.length === 0) rows.push({ kind: "note", path, level, note: "empty", error: undefined });
    known.children.forEach((child, index) => {
      const open = child.hasChildren ? expanded.has(child.path) : undefined;
      rows.push({ kind: "node", path: child.path, child, level, expanded: open, position: index + 1, setSize: known.children.length });
      if (open === true) add(child.path, level + 1);
    });
  };
  add("", 1);
  return rows;
}

export type TreeAction = { kind: "focus"; path: string } | { kind: "expand"; path: string } | { kind: "collapse"; path: string } | { kind: "open"; path: string };

/** What a key does in the tree, after the ARIA pattern; undefined when the key is not the tree's. */
export function keyAction(rows: readonly Row[], focused: string, key: string): TreeAction | undefined {
  const nodes = rows.filter((row): row is NodeRow => row.kind === "node");
  const at = nodes.findIndex((row) => row.path === focused);
  const row = nodes[at];
  const focus = (target: NodeRow | undefined): TreeAction | undefined => (target === undefined ? undefined : { kind: "focus", path: target.path });
  switch (key) {
    case "ArrowDown":
      return focus(nodes[at + 1]);
    case "ArrowUp":
      return at > 0 ? focus(nodes[at - 1]) : undefined;
    case "Home":
      return focus(nodes[0]);
    case "End":
      return focus(nodes.at(-1));
    case "ArrowRight":
      if (row?.expanded === undefined) return undefined;
      if (!row.expanded) return { kind: "expand", path: row.path };
      return parentPath(nodes[at + 1]?.path ?? "") === row.path ? focus(nodes[at + 1]) : undefined;
    case "ArrowLeft":
      if (row?.expanded === true) return { kind: "collapse", path: row.path };
      return focus(nodes.find((other) => row !== undefined && other.path === parentPath(row.path)));
    case "Enter":
    case " ":
      return row === undefined ? undefined : { kind: "open", path: row.path };
    default:
      return typeAhead(nodes, at, key);
  }
}

function typeAhead(nodes: readonly NodeRow[], at: number, key: string): TreeAction | undefined {
  if ([...key].length !== 1 || !/[\p{L}\p{N}]/u.test(key)) return undefined;
  for (let n = 1; n <= nodes.length; n++) {
    const row = nodes[(at + n) % nodes.length];
    if (row !== undefined && collator.compare([...labelOf(row.child)][0] ?? "", key) === 0) return { kind: "focus", path: row.path };
  }
  return undefined;
}
