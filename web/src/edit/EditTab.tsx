import type { MeshNode } from "@hubmesh/client";
import { useCallback, useEffect, useId, useState } from "preact/hooks";
import { useChanges, useDebounced, useLoad } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { Document } from "../document/Document.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import type { Autosaver } from "./autosave.ts";
import { KeptInput, KeptText } from "./KeptText.tsx";
import { SaveStatus } from "./SaveStatus.tsx";

const previewMs = 250;

/** Edits name, description and text or content. Everything is saved by itself; others' edits come in while one types. */
export function EditTab({ node }: { node: MeshNode }) {
  const session = useSession();
  const [saver] = useState(() => session.saverFor(node.path, node));
  useChanges(useCallback((listener: () => void) => saver.onChange(listener), [saver]));
  useEffect(() => () => session.leave(saver), [saver]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      saver.flush();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [saver]);

  const { state, draft } = saver;
  return (
    <div class="edit">
      <div class="edit-bar">
        <SaveStatus saver={saver} version={draft.version} />
      </div>
      {state.kind === "failed" && <ErrorPanel error={state.error} what="Not saved: your text is kept here" onRetry={() => saver.flush()} compact />}
      {state.kind === "deleted" && (
        <p class="banner warning" role="alert">
          This node was deleted while you had it open. Your text is kept here.
          <button type="button" class="button small" onClick={() => void saver.createAgain()}>Create it again</button>
        </p>
      )}
      {draft.conflicts > 0 && (
        <p class="banner" role="status">
          Somebody changed the same words as you did; yours were kept. Theirs are in the <a href="?tab=versions">versions</a>.
        </p>
      )}
      <div class="edit-fields">
        <Field saver={saver} field="name" label="Name" />
        <Field saver={saver} field="description" label="Description" />
      </div>
      {saver.body.kind === "markdown" ? <MarkdownEditor saver={saver} /> : <JsonEditor saver={saver} />}
    </div>
  );
}

function Field({ saver, field, label }: { saver: Autosaver; field: string; label: string }) {
  const id = useId();
  return (
    <div class="edit-field">
      <label for={id}>{label}</label>
      <KeptInput id={id} saver={saver} field={field} />
    </div>
  );
}

function MarkdownEditor({ saver }: { saver: Autosaver }) {
  const { client } = useSession();
  const id = useId();
  const text = useDebounced(saver.text("body"), previewMs);
  const { value, error, reload } = useLoad(`preview ${saver.path}\n${text}`, (signal) => client.renderMarkdown(saver.path, text, { signal }));
  const [side, setSide] = useState<"text" | "preview">("text");
  return (
    <div class={`edit-split show-${side}`}>
      <div class="segmented edit-side" role="group" aria-label="Text or preview">
        <button type="button" aria-pressed={side === "text"} onClick={() => setSide("text")}>Text</button>
        <button type="button" aria-pressed={side === "preview"} onClick={() => setSide("preview")}>Preview</button>
      </div>
      <div class="edit-pane pane-text">
        <label for={id}>Text <span class="muted">Markdown</span></label>
        <KeptText id={id} saver={saver} spellcheck />
      </div>
      <section class="edit-pane pane-preview" aria-label="Preview">
        <p class="pane-label">Preview</p>
        <div class="preview">
          {error !== undefined ? <ErrorPanel error={error} what="No preview" onRetry={reload} compact /> : <Document path={saver.path} html={value ?? ""} quiet />}
        </div>
      </section>
    </div>
  );
}

function JsonEditor({ saver }: { saver: Autosaver }) {
  const id = useId();
  const hint = useId();
  const { state } = saver;
  return (
    <div class="edit-pane json">
      <label for={id}>Content <span class="muted">JSON</span></label>
      <KeptText id={id} saver={saver} invalid={state.kind === "invalid"} describedBy={hint} />
      <p id={hint} class={state.kind === "invalid" ? "hint wrong" : "hint"} role="status">
        {state.kind === "invalid" ? `Not saved, because it is not valid JSON: ${state.message}` : "Saved as soon as it is valid JSON."}
      </p>
    </div>
  );
}
