import { lastSegment, type Child, type Snapshot } from "@hubmesh/client";
import { useMemo, useState } from "preact/hooks";
import { hrefOf } from "../app/place.ts";
import { useSession } from "../app/session.ts";
import { labelOf, listed } from "../tree/rows.ts";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { NodeIcon } from "../ui/NodeIcon.tsx";

const page = 60;

/** What lies directly below a node, live. */
export function Contents(props: { children: Snapshot<Child[]>; title?: string; onCreate?: (() => void) | undefined }) {
  const { children, title = "Contains", onCreate } = props;
  const { live, mayWrite } = useSession();
  const [shown, setShown] = useState(page);
  const sorted = useMemo(() => listed(children.value ?? []), [children.value]);
  if (children.error !== undefined && sorted.length === 0) {
    return children.error.code === "not_found" ? null : <ErrorPanel error={children.error} what="What lies below can not be shown" onRetry={() => live.reconnect()} />;
  }
  if (sorted.length === 0) {
    if (onCreate === undefined || children.status === "loading") return null;
    return (
      <div class="empty">
        <p>Nothing here yet.</p>
        {mayWrite && <button type="button" class="button" onClick={onCreate}><Glyph name="plus" />New node</button>}
      </div>
    );
  }
  return (
    <section class="contents" aria-label={title}>
      <h2>{title} <span class="count">{sorted.length}</span></h2>
      <ul class="node-list">
        {sorted.slice(0, shown).map((child) => (
          <li key={child.path}>
            <a href={hrefOf({ path: child.path })} class={child.version === 0 ? "hollow" : ""}>
              <NodeIcon icon={child.icon} nodeType={child.version === 0 ? undefined : child.nodeType ?? ""} />
              <span class="node-list-name">{labelOf(child)}</span>
              {child.nodeType !== undefined && <span class="node-list-type">{lastSegment(child.nodeType)}</span>}
              {child.hasChildren && <Glyph name="chevron" class="dim" />}
            </a>
          </li>
        ))}
      </ul>
      {sorted.length > shown && <button type="button" class="button quiet" onClick={() => setShown(shown + 10 * page)}>Show more of {sorted.length}</button>}
    </section>
  );
}
