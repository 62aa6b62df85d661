import { pathAndAncestors, lastSegment, type MeshNode } from "@hubmesh/client";
import { Fragment } from "preact";
import { hrefOf, type Tab } from "../app/place.ts";
import { useSession } from "../app/session.ts";
import { Glyph, type GlyphName } from "../ui/Glyph.tsx";
import { Menu } from "../ui/Menu.tsx";
import { NodeIcon } from "../ui/NodeIcon.tsx";
import { Time } from "../ui/Time.tsx";
import type { NodeDialog } from "./NodePage.tsx";

const labels: [Tab, string, GlyphName][] = [
  ["view", "View", "file"],
  ["edit", "Edit", "edit"],
  ["data", "Data", "data"],
  ["versions", "Versions", "history"],
  ["files", "Files", "folder"],
];

export function NodeHeader(props: { node: MeshNode; tab: Tab; deleted: boolean; onDialog: (dialog: NodeDialog) => void }) {
  const { node, tab, deleted, onDialog } = props;
  const session = useSession();
  const copyPath = (): void => {
    navigator.clipboard?.writeText(node.path).then(() => session.notify("info", "Path copied"), () => session.notify("error", "The browser does not allow copying"));
  };
  return (
    <header class="node-head">
      <Breadcrumb path={node.path} />
      <div class="node-heading">
        <NodeIcon icon={node.icon} nodeType={node.nodeType ?? ""} size="large" />
        <h1 class="node-title" tabIndex={-1}>{node.name ?? node.id}</h1>
        <div class="node-actions">
          {session.mayWrite && <button type="button" class="button" onClick={() => onDialog("create")}><Glyph name="plus" />New</button>}
          <Menu
            label="More actions"
            button={<Glyph name="more" />}
            items={[
              { label: "Copy path", run: copyPath },
              ...(session.mayWrite ? [{ label: "Delete…", run: () => onDialog("delete"), danger: true }] : []),
            ]}
          />
        </div>
      </div>
      {node.description !== undefined && <p class="node-description">{node.description}</p>}
      <p class="node-meta">
        {node.nodeType !== undefined && <TypeBadge nodeType={node.nodeType} />}
        {node.state !== undefined && node.state !== "Active" && <span class="badge">{node.state}</span>}
        <a href={hrefOf({ path: node.path, tab: "versions" })} class="version" title="Version">v{node.version}</a>
        {node.lastModified !== undefined && (
          <span>
            {deleted ? "last changed" : "changed"} <Time at={node.lastModified} />
            {node.lastModifiedBy !== undefined && <> by {node.lastModifiedBy}</>}
          </span>
        )}
      </p>
      <nav class="tabs" aria-label="Views of this node">
        <div role="tablist" onKeyDown={moveBetweenTabs}>
          {labels.filter(([name]) => session.mayWrite || name !== "edit").map(([name, label, glyph]) => (
            <a
              key={name}
              id={`tab-${name}`}
              role="tab"
              href={hrefOf({ path: node.path, tab: name })}
              aria-selected={tab === name}
              aria-controls="panel"
              tabIndex={tab === name ? 0 : -1}
            >
              <Glyph name={glyph} />{label}
            </a>
          ))}
        </div>
      </nav>
    </header>
  );
}

/** Arrow keys move between tabs; Enter opens one, as it does for any link. */
function moveBetweenTabs(event: KeyboardEvent): void {
  const all = [...((event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]"))];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const moves: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 };
  const to = moves[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  all[(to + all.length) % all.length]?.focus();
}

/** A type is itself a node where its name is a path. */
export function TypeBadge({ nodeType }: { nodeType: string }) {
  if (!nodeType.includes("/")) return <span class="badge">{nodeType}</span>;
  return <a class="badge" href={hrefOf({ path: nodeType })} title={nodeType}>{lastSegment(nodeType)}</a>;
}

export function Breadcrumb({ path }: { path: string }) {
  const above = pathAndAncestors(path);
  return (
    <nav class="breadcrumb" aria-label="Breadcrumb">
      <ol>
        <li><a href="/" aria-label="All spaces"><Glyph name="home" /></a></li>
        {above.map((at, n) => (
          <Fragment key={at}>
            <li>{n === above.length - 1 ? <span aria-current="page">{lastSegment(at)}</span> : <a href={hrefOf({ path: at })}>{lastSegment(at)}</a>}</li>
          </Fragment>
        ))}
      </ol>
    </nav>
  );
}
