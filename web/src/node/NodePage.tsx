import { lastSegment, type Child, type HubmeshError, type MeshNode, type Snapshot } from "@hubmesh/client";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useLive, usePlace } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { EditTab } from "../edit/EditTab.tsx";
import { FilesTab } from "../files/FilesTab.tsx";
import { Boundary } from "../ui/Boundary.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { VersionsTab } from "../versions/VersionsTab.tsx";
import { Contents } from "./Contents.tsx";
import { CreateDialog } from "./CreateDialog.tsx";
import { DataTab } from "./DataView.tsx";
import { DeleteDialog } from "./DeleteDialog.tsx";
import { Breadcrumb, NodeHeader } from "./NodeHeader.tsx";
import { ViewTab } from "./ViewTab.tsx";

export type NodeDialog = "create" | "delete" | undefined;

/** One node: header, tabs, and what the place's tab shows. */
export function NodePage(props: { path: string }) {
  const { path } = props;
  const { live } = useSession();
  const node = useLive(useCallback((p: string) => live.node(p), [live]), path);
  const children = useLive(useCallback((p: string) => live.children(p), [live]), path);
  const [dialog, setDialog] = useState<NodeDialog>(undefined);
  // A node that is gone stays on the screen, marked, until the person leaves.
  const last = useRef<MeshNode | undefined>(undefined);
  if (node.value !== undefined) last.current = node.value;
  const shown = node.value ?? (last.current?.path === path ? last.current : undefined);

  const name = shown?.name ?? lastSegment(path);
  useEffect(() => {
    document.title = `${name} · hubmesh`;
  }, [name]);

  return (
    <>
      {shown === undefined ? <Absent path={path} node={node} children={children} onCreate={() => setDialog("create")} /> : (
        <Present node={shown} state={node} children={children} onDialog={setDialog} />
      )}
      {dialog === "create" && <CreateDialog namespace={path} onClose={() => setDialog(undefined)} />}
      {dialog === "delete" && shown !== undefined && <DeleteDialog node={shown} onClose={() => setDialog(undefined)} />}
    </>
  );
}

interface PresentProps {
  node: MeshNode;
  state: Snapshot<MeshNode>;
  children: Snapshot<Child[]>;
  onDialog: (dialog: NodeDialog) => void;
}

function Present({ node, state, children, onDialog }: PresentProps) {
  const place = usePlace();
  return (
    <article class="node">
      <NodeHeader node={node} tab={place.tab} deleted={state.status === "deleted"} onDialog={onDialog} />
      {state.status === "deleted" && place.tab !== "edit" && (
        <p class="banner" role="status">This node was deleted. What you see is the last version that was shown here.</p>
      )}
      {state.status === "failed" && state.error !== undefined && <LiveFailure error={state.error} />}
      <div class="tab-panel" id="panel" role="tabpanel" aria-labelledby={`tab-${place.tab}`}>
        <Boundary of={`${place.tab} ${node.version}`} what="This can not be shown here; the other tabs go on">
          {place.tab === "view" && <ViewTab node={node} children={children} hash={place.hash} onCreate={() => onDialog("create")} />}
          {place.tab === "edit" && <EditTab key={node.path} node={node} />}
          {place.tab === "data" && <DataTab node={node} />}
          {place.tab === "versions" && <VersionsTab node={node} at={place.at} />}
          {place.tab === "files" && <FilesTab node={node.path} dir={place.dir} />}
        </Boundary>
      </div>
    </article>
  );
}

function LiveFailure({ error }: { error: HubmeshError }) {
  const { live } = useSession();
  return <ErrorPanel error={error} what="What you see may be old: the live view of this node has ended" onRetry={() => live.reconnect()} compact />;
}

interface AbsentProps {
  path: string;
  node: Snapshot<MeshNode>;
  children: Snapshot<Child[]>;
  onCreate: () => void;
}

/** A path without a node to show: still loading, only a level with nodes below, absent, deleted or refused. */
function Absent({ path, node, children, onCreate }: AbsentProps) {
  const { live, mayWrite } = useSession();
  const below = children.value ?? [];
  if (node.status === "loading" && node.error === undefined) return <Loading />;
  if (node.error !== undefined && node.error.code !== "not_found") {
    return (
      <article class="node">
        <Breadcrumb path={path} />
        <ErrorPanel error={node.error} onRetry={() => live.reconnect()} />
      </article>
    );
  }
  return (
    <article class="node">
      <Breadcrumb path={path} />
      <h1 class="node-title">{lastSegment(path)}</h1>
      {below.length > 0 ? <p class="muted">There is no node of this name, only what lies below it.</p> : (
        <div class="empty">
          <p>There is nothing at <code>{path}</code> that you may read.</p>
          <p class="muted">It may not exist, or it may be somebody else's: the answer is the same.</p>
        </div>
      )}
      <p class="actions">
        {mayWrite && <button type="button" class="button" onClick={onCreate}>New node below</button>}
        <button type="button" class="button quiet" onClick={() => live.reconnect()}>Look again</button>
      </p>
      <Contents children={children} />
    </article>
  );
}

export function Loading() {
  return (
    <div class="loading" role="status" aria-label="Loading">
      <span /><span /><span />
    </div>
  );
}
