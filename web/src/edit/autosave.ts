import { fieldsOf, hasCode, HubmeshError, type Client, type MeshNode, type Snapshot, type View } from "@hubmesh/client";
import { dirtyValues, edit, isDirty, remoteArrived, saveAnswered, saveFailed, saveStarted, type Draft, type Values } from "./draft.ts";
import { bodyOf, changeOf, draftOf, valuesOf, type Body } from "./fields.ts";

export type SaveState =
  | { kind: "saved" }
  | { kind: "unsaved" }
  | { kind: "saving" }
  /** The text is not JSON: nothing is sent until it is. */
  | { kind: "invalid"; message: string }
  /** The server refused or can not be reached; `retryAt` when it is tried again by itself. */
  | { kind: "failed"; error: HubmeshError; retryAt: number | undefined }
  /** The node was deleted by somebody else; the text is kept here. */
  | { kind: "deleted" };

/** Milliseconds after the last key press. */
const quietMs = 700;
/** Milliseconds after which a text that is typed without a pause is saved all the same. */
const longestMs = 4_000;
/** Stale saves in a row after which a save counts as failed for now. */
const maxStale = 8;
const retryFirstMs = 2_000;
const retryMaxMs = 30_000;

/**
 * Saves a draft by itself while it is edited, and takes in what others write. It lives until its last
 * change is saved, also when the editor was left; `close` then lets it go.
 */
export class Autosaver {
  readonly body: Body;
  draft: Draft;
  state: SaveState = { kind: "saved" };
  private node: MeshNode;
  private readonly listeners = new Set<() => void>();
  private readonly stopView: () => void;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private dirtySince = 0;
  private failures = 0;
  private closed = false;

  constructor(private readonly client: Client, private readonly view: View<MeshNode>, readonly path: string, node: MeshNode) {
    this.node = node;
    this.body = bodyOf(node);
    this.draft = draftOf(node, this.body);
    this.stopView = view.subscribe(() => this.arrived(view.current));
    this.arrived(view.current);
  }

  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      this.letGo();
    };
  }

  /** Whether something is not saved yet. */
  get pending(): boolean {
    return isDirty(this.draft) || this.draft.saving !== undefined;
  }

  text(field: string): string {
    return this.draft.fields[field]?.local ?? "";
  }

  edit(field: string, text: string): void {
    this.draft = edit(this.draft, field, text);
    if (this.state.kind === "deleted") return this.notify();
    if (!this.pending) this.settle({ kind: "saved" });
    else {
      if (this.dirtySince === 0) this.dirtySince = Date.now();
      if (this.draft.saving === undefined) {
        this.settle({ kind: "unsaved" });
        this.schedule(Math.max(0, Math.min(quietMs, this.dirtySince + longestMs - Date.now())));
      } else this.notify();
    }
  }

  /** Saves now what is not saved. `leaving`: the request outlives the page. */
  flush(leaving = false): void {
    clearTimeout(this.timer);
    if (isDirty(this.draft) && this.draft.saving === undefined && this.state.kind !== "deleted") void this.save(leaving);
  }

  /** Creates the node again with the text that is kept here. */
  async createAgain(): Promise<void> {
    const values = Object.fromEntries(Object.entries(this.draft.fields).map(([name, field]) => [name, field.local]));
    try {
      const change = changeOf({ ...this.node, content: undefined as never }, this.body, values);
      const content = change.content ?? (change.patch["content"] as never);
      const fields = { ...fieldsOf(this.node), ...(content === undefined ? {} : { content }) };
      const node = await this.client.put(this.path, { ...fields, name: values["name"] ?? "", description: values["description"] ?? "" });
      this.draft = saveAnswered(saveStarted(this.draft, values), { version: node.version, values: valuesOf(node, this.body) });
      this.node = node;
      this.settle({ kind: "saved" });
    } catch (cause) {
      this.fail(cause);
    }
  }

  /** The editor was left: save, and let go when all is saved. */
  close(): void {
    this.closed = true;
    this.flush();
    this.letGo();
  }

  /** The editor was entered again before all was saved. */
  reopen(): void {
    this.closed = false;
  }

  get released(): boolean {
    return this.closed && !this.pending;
  }

  private arrived(snapshot: Snapshot<MeshNode>): void {
    if (snapshot.status === "deleted" && this.draft.saving === undefined) {
      clearTimeout(this.timer);
      this.settle({ kind: "deleted" });
    } else if (snapshot.status === "live" && snapshot.value !== undefined) this.take(snapshot.value);
  }

  private take(node: MeshNode): void {
    if (node.version > this.node.version) this.node = node;
    const before = this.draft;
    this.draft = remoteArrived(this.draft, { version: node.version, values: valuesOf(node, this.body) });
    if (this.state.kind === "deleted" && node.version > before.version) this.settle({ kind: this.pending ? "unsaved" : "saved" });
    else if (before !== this.draft) {
      if (!this.pending && this.state.kind === "unsaved") this.settle({ kind: "saved" });
      else this.notify();
    }
  }

  private schedule(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.save(false), ms);
  }

  private async save(leaving: boolean): Promise<void> {
    const values = dirtyValues(this.draft);
    this.dirtySince = 0;
    for (let stale = 0; ; stale++) {
      let send: () => Promise<MeshNode>;
      try {
        send = this.request(stale === 0 ? values : dirtyValues(this.draft), leaving);
      } catch (cause) {
        this.settle({ kind: "invalid", message: cause instanceof Error ? cause.message : String(cause) });
        return;
      }
      this.draft = saveStarted(this.draft, stale === 0 ? values : dirtyValues(this.draft));
      this.settle({ kind: "saving" });
      try {
        const node = await send();
        this.saved(node);
        return;
      } catch (cause) {
        this.draft = saveFailed(this.draft);
        if (!hasCode(cause, "stale", "conflict") || stale >= maxStale || !(await this.refresh())) return this.fail(await this.signedOut(cause));
        if (!isDirty(this.draft)) return this.settle({ kind: "saved" });
      }
    }
  }

  /** The request that saves values over the node that the draft's bases are of. */
  private request(values: Values, keepalive: boolean): () => Promise<MeshNode> {
    const change = changeOf(this.node, this.body, values);
    const options = { ifMatch: this.draft.version, keepalive };
    if (change.content === undefined) return () => this.client.patch(this.path, change.patch, options);
    const fields = { ...fieldsOf(this.node), content: change.content };
    for (const name of ["name", "description"] as const) {
      if (values[name] !== undefined) fields[name] = values[name];
    }
    return () => this.client.put(this.path, fields, options);
  }

  private saved(node: MeshNode): void {
    this.failures = 0;
    if (node.version > this.node.version) this.node = node;
    this.draft = saveAnswered(this.draft, { version: node.version, values: valuesOf(node, this.body) });
    if (!isDirty(this.draft)) return this.settle({ kind: "saved" });
    this.dirtySince ||= Date.now();
    this.settle({ kind: "unsaved" });
    this.schedule(quietMs);
  }

  /** Reads what somebody else wrote meanwhile and merges it. */
  private async refresh(): Promise<boolean> {
    try {
      this.take(await this.client.get(this.path));
      return true;
    } catch {
      return false; // the save's own refusal is told; the mirror may still bring the node
    }
  }

  /** Why a node can not be read any more: the session may have ended in another tab. */
  private async signedOut(cause: unknown): Promise<unknown> {
    if (!hasCode(cause, "stale", "not_found")) return cause;
    const anonymous = await this.client.whoami().then((who) => who.anonymous, () => false);
    if (!anonymous) return cause;
    return new HubmeshError({ code: "unauthenticated", status: 401, title: "You are signed out", detail: "Sign in again to save; the text is kept here.", retry: "never", cause });
  }

  private fail(cause: unknown): void {
    const error = cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", title: "The edit could not be saved", detail: String(cause), cause });
    if (error.code === "not_found" && this.view.current.status === "deleted") return this.settle({ kind: "deleted" });
    let retryAt: number | undefined;
    if (error.retry !== "never") {
      const backoff = Math.min(retryMaxMs, retryFirstMs * 2 ** this.failures++) * (0.5 + Math.random() / 2);
      const wait = Math.max(backoff, (error.retryAfter ?? 0) * 1000);
      retryAt = Date.now() + wait;
      this.schedule(wait);
    }
    this.settle({ kind: "failed", error, retryAt });
  }

  private settle(state: SaveState): void {
    this.state = state;
    this.notify();
    this.letGo();
  }

  private letGo(): void {
    if (!this.released) return;
    clearTimeout(this.timer);
    this.stopView();
    this.view.close();
  }

  private notify(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
