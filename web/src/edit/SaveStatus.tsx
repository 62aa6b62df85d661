import type { Autosaver } from "./autosave.ts";

/** Whether what is on the screen is safe: said in words, and to screen readers. */
export function SaveStatus({ saver, version }: { saver: Autosaver; version: number }) {
  const { state } = saver;
  return (
    <p class={`save-status ${state.kind}`} role="status">
      <span class="dot" aria-hidden="true" />
      {state.kind === "saved" && <>Saved <span class="muted">v{version}</span></>}
      {state.kind === "unsaved" && "Not saved yet"}
      {state.kind === "saving" && "Saving…"}
      {state.kind === "invalid" && "Not saved: invalid JSON"}
      {state.kind === "deleted" && "Deleted by somebody else"}
      {state.kind === "failed" && (state.retryAt === undefined ? "Not saved" : "Not saved, will be tried again")}
      {(state.kind === "failed" || state.kind === "unsaved") && <button type="button" class="link" onClick={() => saver.flush()}>Save now</button>}
    </p>
  );
}
