import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useObservable } from "../app/hooks.ts";
import { hrefOf } from "../app/place.ts";
import { useSession } from "../app/session.ts";
import { Glyph } from "../ui/Glyph.tsx";
import { NodeIcon } from "../ui/NodeIcon.tsx";
import { keyAction, labelOf, type NodeRow, type NoteRow, type Row } from "./rows.ts";
import type { TreeStore } from "./store.ts";

/** Pixels; the same as --row in the tokens. */
const rowHeight = 28;
const overscan = 12;

/** The tree of nodes. The list keeps the focus and names the active row, so that rows may be drawn on demand. */
export function Tree(props: { store: TreeStore; current: string; onOpened: () => void }) {
  const { store, current, onOpened } = props;
  const { router, live } = useSession();
  useObservable(store);
  const list = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const { rows } = store;

  useEffect(() => store.reveal(current), [current]);

  // A row that gets the focus comes into sight, also when it was not drawn.
  const index = rows.findIndex((row) => row.kind === "node" && row.path === store.focused);
  useLayoutEffect(() => {
    const element = list.current;
    if (element === null || index < 0) return;
    const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
    const [above, below] = [element.scrollTop - top, bottom - element.scrollTop - element.clientHeight];
    if (Math.max(above, below) > element.clientHeight / 2) element.scrollTop = top - element.clientHeight / 2;
    else if (above > 0) element.scrollTop = top - rowHeight;
    else if (below > 0) element.scrollTop += below + rowHeight;
  }, [store.focused, index < 0]);

  useLayoutEffect(() => {
    const element = list.current;
    if (element === null) return;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);

  const open = (path: string): void => {
    store.focus(path);
    router.go({ path });
    onOpened();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = keyAction(rows, store.focused, event.key);
    if (action === undefined) return;
    event.preventDefault();
    if (action.kind === "focus") store.focus(action.path);
    else if (action.kind === "expand") store.expand(action.path);
    else if (action.kind === "collapse") store.collapse(action.path);
    else open(action.path);
  };

  const first = Math.max(0, Math.floor(view.top / rowHeight) - overscan);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + overscan);
  return (
    <div ref={list} class="tree" role="tree" aria-label="Nodes" tabIndex={0} aria-activedescendant={index < 0 ? undefined : rowId(store.focused)} onKeyDown={onKey}>
      <div class="tree-rows" role="presentation" style={{ height: `${rows.length * rowHeight}px` }}>
        {rows.slice(first, last).map((row, n) => (
          <RowView
            key={`${row.kind}:${row.path}`}
            row={row}
            top={(first + n) * rowHeight}
            current={row.kind === "node" && row.path === current}
            focused={row.path === store.focused}
            onToggle={() => {
              store.focus(row.path);
              if (row.kind === "node" && row.expanded === true) store.collapse(row.path);
              else store.expand(row.path);
            }}
            onOpen={() => open(row.path)}
            onRetry={() => live.reconnect()}
          />
        ))}
      </div>
    </div>
  );
}

function rowId(path: string): string {
  return `tree:${path}`;
}

interface RowProps {
  row: Row;
  top: number;
  current: boolean;
  focused: boolean;
  onToggle: () => void;
  onOpen: () => void;
  onRetry: () => void;
}

function RowView(props: RowProps) {
  return props.row.kind === "note" ? <Note {...props} row={props.row} /> : <NodeItem {...props} row={props.row} />;
}

function NodeItem({ row, top, current, focused, onToggle, onOpen }: RowProps & { row: NodeRow }) {
  const { child } = row;
  return (
    <div
      id={rowId(row.path)}
      class={`tree-row${current ? " current" : ""}${focused ? " focused" : ""}${child.version === 0 ? " hollow" : ""}`}
      role="treeitem"
      aria-level={row.level}
      aria-expanded={row.expanded}
      aria-selected={current}
      aria-current={current ? "page" : undefined}
      aria-posinset={row.position}
      aria-setsize={row.setSize}
      aria-label={labelOf(child)}
      style={{ transform: `translateY(${top}px)`, paddingLeft: `${(row.level - 1) * 14 + 4}px` }}
    >
      {row.expanded === undefined ? <span class="twisty" /> : (
        <button type="button" class={row.expanded ? "twisty open" : "twisty"} tabIndex={-1} aria-hidden="true" onClick={onToggle}>
          <Glyph name="chevron" />
        </button>
      )}
      <a
        href={hrefOf({ path: row.path })}
        tabIndex={-1}
        title={row.path}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
          event.preventDefault();
          onOpen();
        }}
        onDblClick={() => row.expanded !== undefined && onToggle()}
      >
        <NodeIcon icon={child.icon} nodeType={child.version === 0 ? undefined : child.nodeType ?? ""} />
        <span class="label">{labelOf(child)}</span>
      </a>
    </div>
  );
}

function Note({ row, top, onRetry }: RowProps & { row: NoteRow }) {
  const style = { transform: `translateY(${top}px)`, paddingLeft: `${(row.level - 1) * 14 + 26}px` };
  if (row.note === "loading") return <div class="tree-row note waiting" style={style} role="none">Loading…</div>;
  if (row.note === "empty") return <div class="tree-row note" style={style} role="none">{row.path === "" ? "No spaces yet" : "Nothing below"}</div>;
  return (
    <div class="tree-row note failed" style={style} role="none">
      <span title={row.error?.detail}>{row.error?.title ?? "Not available"}</span>
      {row.error?.transient === true && <button type="button" class="link" tabIndex={-1} onClick={onRetry}>Try again</button>}
    </div>
  );
}
