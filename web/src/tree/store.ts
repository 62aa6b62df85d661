import { pathAndAncestors, parentPath, type Child, type Live, type View } from "@hubmesh/client";
import { rowsOf, listed, type Level, type Row } from "./rows.ts";

/** What the tree holds: which levels are open, each with a live subscription of its own. */
export class TreeStore {
  rows: readonly Row[] = [];
  /** The row that takes the keys. */
  focused = "";
  /** A node that was opened and is expanded as soon as its row is known to have something below. */
  private opening = "";
  private readonly expanded = new Set<string>();
  private readonly levels = new Map<string, { view: View<Child[]>; level: Level }>();
  private readonly listeners = new Set<() => void>();

  constructor(private readonly live: Live) {
    this.watch("");
    this.refresh();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Opens every level above a path, so that its row can be seen, and the path's own. */
  reveal(path: string): void {
    for (const above of pathAndAncestors(parentPath(path))) {
      this.expanded.add(above);
      this.watch(above);
    }
    if (path !== "") this.focused = path;
    this.opening = path;
    this.refresh();
  }

  expand(path: string): void {
    this.expanded.add(path);
    this.watch(path);
    this.refresh();
  }

  /** Closes a level and drops the subscriptions below it. */
  collapse(path: string): void {
    for (const open of [...this.expanded]) {
      if (open === path || open.startsWith(`${path}/`)) this.drop(open);
    }
    if (this.focused.startsWith(`${path}/`)) this.focused = path;
    this.refresh();
  }

  focus(path: string): void {
    this.focused = path;
    this.refresh();
  }

  private watch(path: string): void {
    if (this.levels.has(path)) return;
    const view = this.live.children(path);
    const held = { view, level: levelOf(view) };
    this.levels.set(path, held);
    view.subscribe(() => {
      held.level = levelOf(view);
      this.refresh();
    });
  }

  private drop(path: string): void {
    this.expanded.delete(path);
    this.levels.get(path)?.view.close();
    this.levels.delete(path);
  }

  private refresh(): void {
    this.rows = rowsOf(this.expanded, (path) => this.levels.get(path)?.level);
    const opened = this.rows.find((row) => row.kind === "node" && row.path === this.opening);
    if (opened?.kind === "node") {
      this.opening = "";
      if (opened.expanded === false) return this.expand(opened.path);
    }
    const nodes = this.rows.filter((row) => row.kind === "node");
    if (!nodes.some((row) => row.path === this.focused)) {
      const above = pathAndAncestors(this.focused).reverse().find((path) => nodes.some((row) => row.path === path));
      // The focus waits where it is while its level loads, and goes to the nearest row above otherwise.
      if (!this.rows.some((row) => row.kind === "note" && row.note === "loading")) this.focused = above ?? nodes[0]?.path ?? "";
    }
    for (const listener of [...this.listeners]) listener();
  }
}

function levelOf(view: View<Child[]>): Level {
  const { status, value, error } = view.current;
  return { status, children: listed(value ?? []), error };
}
