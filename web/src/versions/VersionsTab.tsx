import { fieldsOf, HubmeshError, type MeshNode, type VersionEntry } from "@hubmesh/client";
import { useMemo, useState } from "preact/hooks";
import { useLoad } from "../app/hooks.ts";
import { hrefOf } from "../app/place.ts";
import { useSession } from "../app/session.ts";
import { Document } from "../document/Document.tsx";
import { bodyOf, bodyText } from "../edit/fields.ts";
import { DataView } from "../node/DataView.tsx";
import { Loading } from "../node/NodePage.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Time } from "../ui/Time.tsx";
import { changesOf, type Line } from "./changes.ts";

const pageSize = 100;

/** The history of a node: its versions, one of them to look at, compare and bring back. */
export function VersionsTab({ node, at }: { node: MeshNode; at: number | undefined }) {
  const { client } = useSession();
  const [limit, setLimit] = useState(pageSize);
  const { value, error, reload } = useLoad(`versions ${node.path}\n${node.version} ${limit}`, (signal) => client.versions(node.path, { limit, signal }));
  if (error !== undefined) return <ErrorPanel error={error} what="The history can not be shown" onRetry={reload} />;
  if (value === undefined) return <Loading />;
  return (
    <div class={at === undefined ? "versions" : "versions split"}>
      <ol class="version-list" aria-label="Versions">
        {value.map((entry) => <VersionItem key={entry.version} path={node.path} entry={entry} current={entry.version === node.version} selected={entry.version === at} />)}
        {value.length >= limit && <li><button type="button" class="button quiet" onClick={() => setLimit(limit + pageSize)}>Show older versions</button></li>}
      </ol>
      {at !== undefined && <OneVersion key={at} node={node} at={at} />}
    </div>
  );
}

function VersionItem({ path, entry, current, selected }: { path: string; entry: VersionEntry; current: boolean; selected: boolean }) {
  return (
    <li>
      <a href={hrefOf({ path, tab: "versions", at: entry.version })} class={selected ? "selected" : ""} aria-current={selected ? "true" : undefined}>
        <span class="version-number">v{entry.version}</span>
        <span class="version-what">{entry.kind}{current && <span class="badge">current</span>}</span>
        <span class="version-who"><Time at={entry.at} />{entry.by !== "" && entry.by !== undefined && <> by {entry.by}</>}</span>
      </a>
    </li>
  );
}

function OneVersion({ node, at }: { node: MeshNode; at: number }) {
  const { client, mayWrite } = useSession();
  const [mode, setMode] = useState<"changes" | "content">("changes");
  const [restoring, setRestoring] = useState(false);
  const { value, error, reload } = useLoad(`version ${node.path} ${at}`, (signal) => client.versionAt(node.path, at, { signal }));
  if (error !== undefined) return <ErrorPanel error={error} what={`Version ${at} can not be shown`} onRetry={reload} />;
  if (value === undefined) return <Loading />;
  const current = at === node.version;
  return (
    <section class="version-view" aria-label={`Version ${at}`}>
      <div class="version-bar">
        <h2>Version {at}</h2>
        <div class="segmented" role="group" aria-label="What to show">
          <button type="button" aria-pressed={mode === "changes"} onClick={() => setMode("changes")}>Changes since</button>
          <button type="button" aria-pressed={mode === "content"} onClick={() => setMode("content")}>Content</button>
        </div>
        {mayWrite && <button type="button" class="button" disabled={current} onClick={() => setRestoring(true)}>Restore…</button>}
      </div>
      {mode === "changes" ? <Changes old={value} node={node} /> : <OldContent node={value} />}
      {restoring && <RestoreDialog node={node} old={value} onClose={() => setRestoring(false)} />}
    </section>
  );
}

function Changes({ old, node }: { old: MeshNode; node: MeshNode }) {
  const lines = useMemo(() => changesOf(old, node), [old, node]);
  if (lines.length === 0) return <p class="muted">{old.version === node.version ? "This is the current version." : "Nothing differs from the current version."}</p>;
  return (
    <div class="changes" role="region" aria-label={`Changes from version ${old.version} to ${node.version}`} tabIndex={0}>
      {lines.map((line, n) => <ChangedLine key={n} line={line} />)}
    </div>
  );
}

const signs = { added: "+", removed: "−", same: " ", gap: "⋯", head: "" } as const;

function ChangedLine({ line }: { line: Line }) {
  if (line.kind === "head") return <h3 class="change-head">{line.text}</h3>;
  const said = line.kind === "added" ? "added: " : line.kind === "removed" ? "removed: " : undefined;
  return (
    <div class={`change ${line.kind}`}>
      <span class="sign" aria-hidden="true">{signs[line.kind]}</span>
      <span class="change-text">{said !== undefined && <span class="sr-only">{said}</span>}{line.text}</span>
    </div>
  );
}

function OldContent({ node }: { node: MeshNode }) {
  const { client } = useSession();
  const body = bodyOf(node);
  const text = bodyText(node, body);
  const { value, error, reload } = useLoad(body.kind === "markdown" ? `old ${node.path} ${node.version}` : undefined, (signal) => client.renderMarkdown(node.path, text, { signal }));
  if (body.kind === "json") return node.content === undefined ? <p class="muted">No content.</p> : <DataView value={node.content} />;
  if (error !== undefined) return <ErrorPanel error={error} onRetry={reload} compact />;
  return value === undefined ? <Loading /> : <Document path={node.path} html={value} quiet />;
}

/** A restore is a write like any other: the old fields become the newest version. */
function RestoreDialog({ node, old, onClose }: { node: MeshNode; old: MeshNode; onClose: () => void }) {
  const session = useSession();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<HubmeshError | undefined>(undefined);
  const run = (): void => {
    setBusy(true);
    session.client.put(node.path, fieldsOf(old), { ifMatch: node.version }).then(
      (restored) => {
        session.notify("info", `Version ${old.version} is back, as version ${restored.version}`);
        onClose();
        session.router.go({ path: node.path, tab: "versions" });
      },
      (cause: unknown) => {
        setBusy(false);
        setError(cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", detail: String(cause) }));
      },
    );
  };
  return (
    <Dialog title={`Restore version ${old.version}?`} onClose={onClose}>
      <p>The node becomes what it was in version {old.version}. What it is now stays in the history as version {node.version}.</p>
      {error !== undefined && <ErrorPanel error={error} compact onRetry={run} />}
      <footer class="dialog-foot">
        <button type="button" class="button quiet" onClick={onClose}>Cancel</button>
        <button type="button" class="button primary" disabled={busy} autofocus onClick={run}>{busy ? "Restoring…" : "Restore"}</button>
      </footer>
    </Dialog>
  );
}
