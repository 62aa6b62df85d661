import { useCallback, useEffect, useState } from "preact/hooks";
import { Contents } from "../node/Contents.tsx";
import { CreateDialog } from "../node/CreateDialog.tsx";
import { Loading } from "../node/NodePage.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { useLive } from "./hooks.ts";
import { useSession } from "./session.ts";

/** The top of the mesh: the spaces. */
export function Home() {
  const { live, mayWrite } = useSession();
  const [creating, setCreating] = useState(false);
  const children = useLive(useCallback((path: string) => live.children(path), [live]), "");
  useEffect(() => {
    document.title = "hubmesh";
  }, []);
  return (
    <article class="node home">
      <header class="node-head">
        <div class="node-heading">
          <h1 class="node-title" tabIndex={-1}>Spaces</h1>
          {mayWrite && <div class="node-actions"><button type="button" class="button" onClick={() => setCreating(true)}><Glyph name="plus" />New space</button></div>}
        </div>
        <p class="node-description">Everything that is stored here, each space with nodes of its own.</p>
      </header>
      {children.status === "loading" ? <Loading /> : children.value?.length === 0 ? (
        <div class="empty">
          <p>There is nothing here that you may read yet.</p>
          <p class="muted">Make a space, or bring a folder of documents in with <code>hubmesh import DIR</code>.</p>
        </div>
      ) : <Contents children={children} title="All spaces" />}
      {creating && <CreateDialog namespace="" onClose={() => setCreating(false)} />}
    </article>
  );
}
