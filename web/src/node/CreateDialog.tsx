import { HubmeshError, joinPath } from "@hubmesh/client";
import { useId, useState } from "preact/hooks";
import { useLoad } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";
import { typeDefinitions } from "../search/search.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { idOf, idProblem, newFields } from "./create.ts";

/** Makes a node below another, or a space at the top. */
export function CreateDialog({ namespace, onClose }: { namespace: string; onClose: () => void }) {
  const { client, router } = useSession();
  const atTop = namespace === "";
  const [name, setName] = useState("");
  const [typedId, setTypedId] = useState<string | undefined>(undefined);
  const [nodeType, setNodeType] = useState(atTop ? "Space" : "Markdown");
  const [body, setBody] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<HubmeshError | undefined>(undefined);
  const [invalid, setInvalid] = useState("");
  const types = useLoad(atTop ? undefined : "types", (signal) => client.query(typeDefinitions, { signal }));
  const ids = { name: useId(), id: useId(), type: useId(), types: useId(), body: useId(), hint: useId() };
  const id = typedId ?? idOf(name);
  const problem = idProblem(id);

  const submit = (event: Event): void => {
    event.preventDefault();
    if (id === "" || problem !== undefined || busy) return;
    setError(undefined);
    setInvalid("");
    let fields;
    try {
      fields = newFields({ name, nodeType: nodeType.trim(), body });
    } catch (cause) {
      setInvalid(`The content is not valid JSON: ${cause instanceof Error ? cause.message : String(cause)}`);
      return;
    }
    setBusy(true);
    const path = joinPath(namespace, id);
    client.create(path, fields).then(
      () => {
        onClose();
        router.go({ path, tab: nodeType === "Markdown" && body === "" ? "edit" : "view" });
      },
      (cause: unknown) => {
        setBusy(false);
        setError(cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", detail: String(cause) }));
      },
    );
  };

  const markdown = nodeType.trim() === "Markdown";
  return (
    <Dialog title={atTop ? "New space" : "New node"} onClose={onClose}>
      <form class="form" onSubmit={submit}>
        <p class="muted form-place">{atTop ? "A space holds nodes and says who may see them." : <>below <code>{namespace}</code></>}</p>
        <label for={ids.name}>Name</label>
        <input id={ids.name} type="text" value={name} autofocus autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
        <label for={ids.id}>Id</label>
        <input id={ids.id} type="text" class="mono" value={id} required autocomplete="off" spellcheck={false} aria-invalid={problem !== undefined} aria-describedby={ids.hint} onInput={(event) => setTypedId(event.currentTarget.value)} />
        <p class={problem === undefined ? "hint" : "hint wrong"} id={ids.hint}>{problem ?? `Its address will be ${joinPath(namespace, id === "" ? "…" : id)}`}</p>
        {!atTop && (
          <>
            <label for={ids.type}>Type</label>
            <input id={ids.type} type="text" list={ids.types} value={nodeType} autocomplete="off" spellcheck={false} onInput={(event) => setNodeType(event.currentTarget.value)} />
            <p class="hint">A known type, or nothing for data without one.</p>
            <datalist id={ids.types}>
              <option value="Markdown" />
              {(types.value?.nodes ?? []).map((type) => <option key={type.path} value={type.path}>{type.name ?? type.id}</option>)}
            </datalist>
            <label for={ids.body}>{markdown ? "Text (Markdown)" : "Content (JSON)"}</label>
            <textarea id={ids.body} class="mono" rows={7} value={body} spellcheck={markdown} placeholder={markdown ? "Can be written later, too" : "{ }"} onInput={(event) => setBody(event.currentTarget.value)} />
          </>
        )}
        {invalid !== "" && <p class="hint wrong" role="alert">{invalid}</p>}
        {error !== undefined && <ErrorPanel error={error} compact onRetry={() => setError(undefined)} />}
        <footer class="dialog-foot">
          <button type="button" class="button quiet" onClick={onClose}>Cancel</button>
          <button type="submit" class="button primary" disabled={busy || id === "" || problem !== undefined}>{busy ? "Creating…" : "Create"}</button>
        </footer>
      </form>
    </Dialog>
  );
}
