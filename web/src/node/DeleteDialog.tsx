import { hasCode, HubmeshError, parentPath, type MeshNode } from "@hubmesh/client";
import { useState } from "preact/hooks";
import { useSession } from "../app/session.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";

/** Asks before it deletes; a node with others below it asks again, for the whole of it. */
export function DeleteDialog({ node, onClose }: { node: MeshNode; onClose: () => void }) {
  const session = useSession();
  const [busy, setBusy] = useState(false);
  const [hasBelow, setHasBelow] = useState(false);
  const [error, setError] = useState<HubmeshError | undefined>(undefined);
  const name = node.name ?? node.id;

  const run = (recursive: boolean): void => {
    setBusy(true);
    setError(undefined);
    session.client.delete(node.path, { recursive }).then(
      ({ deleted }) => {
        session.notify("info", deleted === 1 ? `Deleted ${name}` : `Deleted ${name} and ${deleted - 1} below it`);
        onClose();
        session.router.go({ path: parentPath(node.path) });
      },
      (cause: unknown) => {
        setBusy(false);
        if (hasCode(cause, "has_children")) setHasBelow(true);
        else if (hasCode(cause, "not_found")) {
          session.notify("info", `${name} was deleted already`);
          onClose();
        } else setError(cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", detail: String(cause) }));
      },
    );
  };

  return (
    <Dialog title={`Delete ${name}?`} onClose={onClose}>
      <p>{hasBelow ? <>There are nodes below <code>{node.path}</code>. They would be deleted with it, files included.</> : <><code>{node.path}</code> will be gone for everybody.</>}</p>
      {error !== undefined && <ErrorPanel error={error} compact onRetry={() => run(hasBelow)} />}
      <footer class="dialog-foot">
        <button type="button" class="button quiet" onClick={onClose}>Cancel</button>
        <button type="button" class="button danger" disabled={busy} autofocus onClick={() => run(hasBelow)}>
          {busy ? "Deleting…" : hasBelow ? "Delete all of it" : "Delete"}
        </button>
      </footer>
    </Dialog>
  );
}
