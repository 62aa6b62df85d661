import { fieldsOf, hasCode, HubmeshError, type Client, type MeshNode, type Snapshot, type View } from "@hubmesh/client";
import { assumeNearest, dirtyValues, edit, isDirty, missingVersion, remoteArrived, saveAnswered, saveFailed, saveLost, saveStarted, type Draft, type Values } from "./draft.ts";
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

/** When a draft is saved, in milliseconds. */
export interface Timing {
  /** After the last key press. */
  readonly quietMs: number;
  /** After which a text that is typed without a pause is saved all the same. */
  readonly longestMs: number;
}
const usual: Timing = { quietMs: 700, longestMs: 4_000 };
/** Stale saves in a row after which a save counts as failed for now. */
const maxStale = 8;
/** The first wait after a failure, in milliseconds; each further one is twice as long, up to a bound. */
const retryFirstMs = 250;
const retryMaxMs = 30_000;
/** Tries that do not wait for what the server asks for, unless it has too much to do. */
const hasty = 2;
/** The bound while typing goes on. */
const typingRetryMs = 2_000;

/**
 * Saves a draft by itself while it is edited, and takes in what others write. A save whose answer is lost
 * may have been stored: the node is read before it is saved again, so that no edit is lost and none is
 * there twice. It lives until its last change is saved, also when the editor was left; `close` then lets it go.
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
  /** A save is under way, with all its tries. */
  private busy = false;
  /** A save may have been stored, and the node was not read since. */
  private unsure = false;
  /** Milliseconds since 1970 before which the server does not want another try. */
  private notBefore = 0;
  /** When the first try of the present save was sent; 0 between saves. */
  private sentAt = 0;
  private closed = false;
  /** Saves that were acknowledged, tries that failed, and how long the last acknowledged one took with all its tries, in milliseconds. */
  saves = 0;
  retries = 0;
  lastSaveMs = 0;

  constructor(private readonly client: Client, private readonly view: View<MeshNode>, readonly path: string, node: MeshNode, private readonly timing: Timing = usual) {
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
    return isDirty(this.draft) || this.draft.saving !== undefined || this.unsure;
  }

  text(field: string): string {
    return this.draft.fields[field]?.local ?? "";
  }

  edit(field: string, text: string): void {
    this.draft = edit(this.draft, field, text);
    const { state } = this;
    if (state.kind === "deleted" || this.busy) return this.notify();
    if (!this.pending) return this.settle({ kind: "saved" });
    const now = Date.now();
    if (this.dirtySince === 0) this.dirtySince = now;
    if (state.kind === "failed" && state.retryAt !== undefined) {
      // The next try is due already: typing brings it nearer, and does not put it off.
      const retryAt = Math.min(state.retryAt, Math.max(this.notBefore, now + typingRetryMs));
      if (retryAt === state.retryAt) return this.notify();
      this.schedule(retryAt - now);
      return this.settle({ ...state, retryAt });
    }
    this.settle({ kind: "unsaved" });
    this.schedule(Math.max(0, Math.min(this.timing.quietMs, this.dirtySince + this.timing.longestMs - now)));
  }

  /** Saves now what is not saved. `leaving`: the request outlives the page. */
  flush(leaving = false): void {
    clearTimeout(this.timer);
    if (this.pending && !this.busy && this.state.kind !== "deleted") void this.save(leaving);
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
      this.settle(this.failed(errorOf(cause)));
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
    this.tell(before);
    if (this.draft.lost.length === 0) this.unsure = false;
    if (this.busy) {
      if (before !== this.draft) this.notify();
    } else if (this.state.kind === "deleted" && node.version > before.version) this.settle({ kind: this.pending ? "unsaved" : "saved" });
    else if (missingVersion(this.draft) !== undefined) this.schedule(0);
    else if (before !== this.draft) this.moved();
  }

  /** Another version is there, and the server with it. */
  private moved(): void {
    const waits = this.state.kind === "unsaved" || this.state.kind === "failed";
    if (!this.pending && waits) {
      clearTimeout(this.timer);
      this.failures = 0;
      this.settle({ kind: "saved" });
    } else if (this.pending && this.state.kind === "saved") {
      // An own save was stored after its text had been taken back: it is saved as it is here.
      this.settle({ kind: "unsaved" });
      this.schedule(this.timing.quietMs);
    } else {
      if (this.state.kind === "failed" && this.state.retryAt !== undefined) this.schedule(Math.max(0, Math.min(this.state.retryAt, Math.max(this.notBefore, Date.now() + retryFirstMs)) - Date.now()));
      this.notify();
    }
  }

  /** Counts a save that is acknowledged: by its answer, or by a version that holds it. */
  private tell(before: Draft): void {
    if (this.draft.acknowledged <= before.acknowledged || this.sentAt === 0) return;
    this.saves++;
    this.lastSaveMs = Date.now() - this.sentAt;
    this.sentAt = 0;
  }

  private schedule(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.save(false), ms);
  }

  private async save(leaving: boolean): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    const state = await this.tries(leaving).finally(() => {
      this.busy = false;
    });
    this.settle(state.kind === "failed" && !this.pending ? { kind: "saved" } : state);
    if (missingVersion(this.draft) !== undefined) this.schedule(0);
    else if (state.kind === "unsaved") {
      this.dirtySince ||= Date.now();
      this.schedule(Math.min(this.timing.quietMs, this.timing.longestMs));
    }
  }

  /** Saves, and merges as long as others write in between. The state that it ends in. */
  private async tries(leaving: boolean): Promise<SaveState> {
    this.dirtySince = 0;
    if (this.draft.lost.length > 0 && !leaving) {
      if (isDirty(this.draft)) this.settle({ kind: "saving" });
      const failure = await this.refresh();
      if (failure !== undefined) return this.failed(failure);
    }
    for (let stale = 0; ; stale++) {
      const values = dirtyValues(this.draft);
      if (Object.keys(values).length === 0) return this.done();
      let send: () => Promise<MeshNode>;
      try {
        send = this.request(values, leaving);
      } catch (cause) {
        return { kind: "invalid", message: cause instanceof Error ? cause.message : String(cause) };
      }
      this.draft = saveStarted(this.draft, values);
      this.sentAt ||= Date.now();
      this.settle({ kind: "saving" });
      const before = this.draft;
      try {
        const node = await send();
        if (node.version > this.node.version) this.node = node;
        this.draft = saveAnswered(this.draft, { version: node.version, values: valuesOf(node, this.body) });
        this.unsure = false;
        this.tell(before);
        return this.done();
      } catch (cause) {
        const error = errorOf(cause);
        // Also a refusal as stale may be of an own save: its answer was lost between a proxy and the server.
        const outdated = hasCode(error, "stale", "conflict");
        this.unsure = error.outcomeUnknown || outdated;
        this.draft = this.unsure ? saveLost(this.draft) : saveFailed(this.draft);
        this.tell(before);
        if (!outdated || stale >= maxStale || (await this.refresh()) !== undefined) return this.failed(await this.signedOut(error));
      }
    }
  }

  private done(): SaveState {
    this.failures = 0;
    this.notBefore = 0;
    return { kind: isDirty(this.draft) ? "unsaved" : "saved" };
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

  /** Reads what is stored, and with it whether a save with a lost answer is. The error when that can not be read. */
  private async refresh(): Promise<HubmeshError | undefined> {
    try {
      this.take(await this.client.get(this.path));
      for (let missing = missingVersion(this.draft); missing !== undefined; missing = missingVersion(this.draft)) await this.takeVersion(missing);
      this.unsure = false;
      return undefined;
    } catch (cause) {
      return errorOf(cause);
    }
  }

  private async takeVersion(version: number): Promise<void> {
    const before = this.draft;
    try {
      this.take(await this.client.versionAt(this.path, version));
    } catch (cause) {
      if (!hasCode(cause, "not_found")) throw cause;
    }
    if (this.draft !== before) return;
    this.draft = assumeNearest(this.draft);
    this.tell(before);
  }

  /** Why a node can not be read any more: the session may have ended in another tab. */
  private async signedOut(cause: HubmeshError): Promise<HubmeshError> {
    if (!hasCode(cause, "stale", "not_found")) return cause;
    const anonymous = await this.client.whoami().then((who) => who.anonymous, () => false);
    if (!anonymous) return cause;
    return new HubmeshError({ code: "unauthenticated", status: 401, title: "You are signed out", detail: "Sign in again to save; the text is kept here.", retry: "never", cause });
  }

  /** Refused, or no answer: tried again soon, unless the server says that it never helps. */
  private failed(error: HubmeshError): SaveState {
    if (error.code === "not_found" && this.view.current.status === "deleted") return { kind: "deleted" };
    this.retries++;
    if (error.retry === "never" && !(error.outcomeUnknown && error.code === "unexpected")) return { kind: "failed", error, retryAt: undefined };
    const backoff = Math.min(retryMaxMs, retryFirstMs * 2 ** Math.min(this.failures, 16)) * (0.5 + Math.random() / 2);
    // A server that has too much to do is waited for; one that starts, moves or is gone may have been replaced already.
    const wanted = (error.retryAfter ?? 0) * 1000;
    const busy = hasCode(error, "rate_limited", "overloaded", "storage_full");
    const asked = busy || this.failures >= hasty ? wanted : 0;
    this.failures++;
    this.notBefore = busy ? Date.now() + wanted : 0;
    const wait = Math.max(backoff, asked);
    this.schedule(wait);
    return { kind: "failed", error, retryAt: Date.now() + wait };
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

function errorOf(cause: unknown): HubmeshError {
  return cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", status: 400, title: "The edit could not be saved", detail: String(cause), cause });
}
