import { HubmeshError, joinPath, type FileEntry } from "@hubmesh/client";
import { Fragment } from "preact";
import { useRef, useState } from "preact/hooks";
import { useLoad } from "../app/hooks.ts";
import { hrefOf } from "../app/place.ts";
import { useSession } from "../app/session.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { bytes, Time } from "../ui/Time.tsx";

const collection = "content";

/** The files of a node's published collection: look, upload, download, delete. */
export function FilesTab({ node, dir }: { node: string; dir: string }) {
  const { client, mayWrite } = useSession();
  const { value, error, loading, reload } = useLoad(`files ${node} ${dir}`, (signal) => client.files(node, { collection, dir, signal }));
  const upload = useUpload(node, dir, reload);
  const [deleting, setDeleting] = useState<FileEntry | undefined>(undefined);
  const [over, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const entries = [...(value?.entries ?? [])].sort((a, b) => Number(b.dir) - Number(a.dir) || a.name.localeCompare(b.name, "en", { numeric: true }));
  const absent = error?.code === "not_found";

  return (
    <div
      class={over ? "files over" : "files"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void upload.run([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <div class="files-bar">
        <Folders node={node} dir={dir} />
        <button type="button" class="button quiet" onClick={reload} disabled={loading}>Refresh</button>
        {mayWrite && <button type="button" class="button primary" onClick={() => input.current?.click()}><Glyph name="upload" />Upload</button>}
        <input
          ref={input}
          class="sr-only"
          type="file"
          multiple
          tabIndex={-1}
          aria-label="Files to upload"
          onChange={(event) => {
            void upload.run([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
      </div>
      {upload.running.map((name) => <p key={name} class="upload" role="status"><span class="spinner" aria-hidden="true" />Uploading {name}…</p>)}
      {upload.failed.map(({ name, error: failure }) => <ErrorPanel key={name} error={failure} what={`${name} was not uploaded`} compact />)}
      {error !== undefined && !absent && <ErrorPanel error={error} what="The files can not be shown" onRetry={reload} />}
      {(absent || (value !== undefined && entries.length === 0)) && (
        <div class="empty">
          <p>No files here.</p>
          <p class="muted">Drop some, or use Upload. A document shows an image as <code>![](name.png)</code>.</p>
        </div>
      )}
      {entries.length > 0 && (
        <table class="file-list">
          <thead><tr><th scope="col">Name</th><th scope="col" class="right">Size</th><th scope="col">Changed</th><th scope="col"><span class="sr-only">Actions</span></th></tr></thead>
          <tbody>
            {entries.map((entry) => <FileRow key={entry.name} node={node} dir={dir} entry={entry} onDelete={() => setDeleting(entry)} />)}
          </tbody>
        </table>
      )}
      {deleting !== undefined && <DeleteFileDialog node={node} file={joinPath(dir, deleting.name)} onDone={reload} onClose={() => setDeleting(undefined)} />}
    </div>
  );
}

function FileRow({ node, dir, entry, onDelete }: { node: string; dir: string; entry: FileEntry; onDelete: () => void }) {
  const { client, mayWrite } = useSession();
  const file = joinPath(dir, entry.name);
  if (entry.dir) {
    return (
      <tr>
        <td colSpan={4}><a href={hrefOf({ path: node, tab: "files", dir: file })}><Glyph name="folder" />{entry.name}</a></td>
      </tr>
    );
  }
  const url = entry.url ?? client.contentUrl(node, collection, file);
  return (
    <tr>
      <td><a href={url} target="_blank" rel="noopener"><Glyph name="file" />{entry.name}</a></td>
      <td class="right">{entry.size === undefined ? "" : bytes(entry.size)}</td>
      <td><Time at={entry.modified} /></td>
      <td class="row-actions">
        <a class="icon-button" href={`${url}?download`} download={entry.name} aria-label={`Download ${entry.name}`} title="Download"><Glyph name="download" /></a>
        {mayWrite && <button type="button" class="icon-button" aria-label={`Delete ${entry.name}`} title="Delete" onClick={onDelete}><Glyph name="trash" /></button>}
      </td>
    </tr>
  );
}

function Folders({ node, dir }: { node: string; dir: string }) {
  const parts = dir === "" ? [] : dir.split("/");
  return (
    <nav class="folders" aria-label="Folder">
      <a href={hrefOf({ path: node, tab: "files" })}>{collection}</a>
      {parts.map((part, n) => (
        <Fragment key={n}>
          <span aria-hidden="true">/</span>
          <a href={hrefOf({ path: node, tab: "files", dir: parts.slice(0, n + 1).join("/") })}>{part}</a>
        </Fragment>
      ))}
    </nav>
  );
}

function DeleteFileDialog({ node, file, onDone, onClose }: { node: string; file: string; onDone: () => void; onClose: () => void }) {
  const { client } = useSession();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<HubmeshError | undefined>(undefined);
  const run = (): void => {
    setBusy(true);
    client.deleteFile(node, collection, file).then(
      () => {
        onClose();
        onDone();
      },
      (cause: unknown) => {
        setBusy(false);
        setError(errorOf(cause));
      },
    );
  };
  return (
    <Dialog title={`Delete ${file}?`} onClose={onClose}>
      <p>Files have no history: it can not be brought back.</p>
      {error !== undefined && <ErrorPanel error={error} compact onRetry={run} />}
      <footer class="dialog-foot">
        <button type="button" class="button quiet" onClick={onClose}>Cancel</button>
        <button type="button" class="button danger" disabled={busy} autofocus onClick={run}>{busy ? "Deleting…" : "Delete"}</button>
      </footer>
    </Dialog>
  );
}

/** Uploads one file after the other; each fails alone. */
function useUpload(node: string, dir: string, onDone: () => void) {
  const { client } = useSession();
  const [running, setRunning] = useState<string[]>([]);
  const [failed, setFailed] = useState<{ name: string; error: HubmeshError }[]>([]);
  const run = async (files: File[]): Promise<void> => {
    if (files.length === 0) return;
    setFailed([]);
    setRunning(files.map((file) => file.name));
    for (const file of files) {
      try {
        await client.upload(node, collection, joinPath(dir, file.name), file, { contentType: file.type });
      } catch (cause) {
        setFailed((old) => [...old, { name: file.name, error: errorOf(cause) }]);
      }
      setRunning((old) => old.filter((name) => name !== file.name));
    }
    onDone();
  };
  return { running, failed, run };
}

function errorOf(cause: unknown): HubmeshError {
  return cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", detail: String(cause) });
}
