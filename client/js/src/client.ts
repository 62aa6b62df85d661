import { defaultRequestTimeoutMs, send, sendForJson, type Fetch, type RequestOptions, type Transport } from "./http.ts";
import type { ClusterStatus, DemoAction, DemoState, Why } from "./operation.ts";
import { encodePath } from "./path.ts";
import { followStates, type StatesOptions } from "./states.ts";
import type {
  ChildrenPage, CreateResult, Deleted, FileListing, FileStored, Json, JsonObject, MeshNode, NodeFields, QueryResult, Rendered,
  VersionEntry, WhoAmI,
} from "./types.ts";

export interface ClientOptions {
  /** Origin (and path prefix) of the server, such as "http://127.0.0.1:8080"; the page's own origin when left out. */
  baseUrl?: string;
  /** A token, or a function that gives the current one; in a browser the session cookie is used instead. */
  token?: string | (() => string | undefined);
  fetch?: Fetch;
  /** Milliseconds; see defaultRequestTimeoutMs. */
  requestTimeoutMs?: number;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface WriteOptions extends CallOptions {
  /** The write is refused (`stale`) unless the node has this version. */
  ifMatch?: number;
  keepalive?: boolean;
}

export interface FileWriteOptions extends CallOptions {
  /** The change is refused (`stale`) unless the file that is there has this ETag, as an upload or a read gave it; "*" is any. */
  ifMatch?: string;
  /** The upload is refused (`stale`) where there is a file already. */
  ifAbsent?: boolean;
}

/** The verbs of the HTTP API. Every method throws a HubmeshError when the call fails. Safe to share. */
export class Client implements Transport {
  readonly baseUrl: string;
  readonly token: string | (() => string | undefined) | undefined;
  readonly fetch: Fetch;
  readonly requestTimeoutMs: number;

  constructor(options: ClientOptions = {}) {
    this.baseUrl = (options.baseUrl ?? "").replace(/\/+$/, "");
    this.token = options.token;
    this.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.requestTimeoutMs = options.requestTimeoutMs ?? defaultRequestTimeoutMs;
  }

  // Nodes

  get(path: string, options: CallOptions = {}): Promise<MeshNode> {
    return this.json(nodes(path), { ...options });
  }

  create(path: string, fields: NodeFields, options: CallOptions = {}): Promise<MeshNode> {
    return this.json(nodes(path), { ...options, method: "POST", json: fields });
  }

  /** Creates many; each result names a version or the problem of that node alone. */
  async createMany(list: (NodeFields & { path: string })[], options: CallOptions = {}): Promise<CreateResult[]> {
    return (await this.json<{ results: CreateResult[] }>("/api/nodes", { ...options, method: "POST", json: { nodes: list } })).results;
  }

  /** Creates the node, or replaces every writable field of it. */
  put(path: string, fields: NodeFields, options: WriteOptions & { ifAbsent?: boolean } = {}): Promise<MeshNode> {
    const { ifAbsent, ...rest } = options;
    const request = write("PUT", rest, fields);
    if (ifAbsent === true) request.headers = { ...request.headers, "If-None-Match": "*" };
    return this.json(nodes(path), request);
  }

  /** Applies an RFC 7396 merge patch over the writable fields; null removes a field. */
  patch(path: string, patch: JsonObject, options: WriteOptions = {}): Promise<MeshNode> {
    const request = write("PATCH", options, patch);
    request.headers = { ...request.headers, "Content-Type": "application/merge-patch+json" };
    return this.json(nodes(path), request);
  }

  delete(path: string, options: WriteOptions & { recursive?: boolean } = {}): Promise<Deleted> {
    const { recursive, ...rest } = options;
    return this.json(nodes(path), { ...write("DELETE", rest), query: { recursive } });
  }

  /** One page of direct children; the empty path lists the spaces. */
  children(path: string, options: CallOptions & { after?: string; limit?: number; satellites?: boolean } = {}): Promise<ChildrenPage> {
    const { after, limit, satellites, ...rest } = options;
    return this.json(`/api/children/${encodePath(path)}`, { ...rest, query: { after, limit, satellites } });
  }

  async versions(path: string, options: CallOptions & { before?: number; limit?: number } = {}): Promise<VersionEntry[]> {
    const { before, limit, ...rest } = options;
    return (await this.json<{ versions: VersionEntry[] }>(`/api/versions/${encodePath(path)}`, { ...rest, query: { before, limit } })).versions;
  }

  /** The node as it was at a version. */
  versionAt(path: string, version: number, options: CallOptions = {}): Promise<MeshNode> {
    return this.json(`/api/versions/${encodePath(path)}`, { ...options, query: { at: version } });
  }

  query(q: string, options: CallOptions = {}): Promise<QueryResult> {
    return this.json("/api/query", { ...options, query: { q } });
  }

  /** The node's document as sanitised HTML. */
  render(path: string, options: CallOptions = {}): Promise<Rendered> {
    return this.json(`/api/render/${encodePath(path)}`, { ...options });
  }

  /** The HTML that Markdown would have as the document of the node at a path: for previews. */
  async renderMarkdown(path: string, markdown: string, options: CallOptions = {}): Promise<string> {
    const request: RequestOptions = { ...options, method: "POST", json: { markdown } };
    return (await this.json<{ html: string }>(`/api/render/${encodePath(path)}`, request)).html;
  }

  // Files

  files(node: string, options: CallOptions & { collection?: string; dir?: string } = {}): Promise<FileListing> {
    const { collection, dir, ...rest } = options;
    return this.json(`/api/files/${encodePath(node)}`, { ...rest, query: { collection, dir: dir === "" ? undefined : dir } });
  }

  /** Stores a file. The `etag` of the answer is what `ifMatch` of the next change takes; large files have none. */
  upload(node: string, collection: string, file: string, body: BodyInit, options: FileWriteOptions & { contentType?: string } = {}): Promise<FileStored> {
    const { contentType, ifMatch, ifAbsent, ...rest } = options;
    const headers: Record<string, string> = { "Content-Type": contentType === undefined || contentType === "" ? "application/octet-stream" : contentType };
    if (ifMatch !== undefined) headers["If-Match"] = ifMatch;
    if (ifAbsent === true) headers["If-None-Match"] = "*";
    return this.json(filePath("/api/files", node, collection, file), { ...rest, method: "PUT", body, headers, unbounded: true });
  }

  async deleteFile(node: string, collection: string, file: string, options: CallOptions & { ifMatch?: string } = {}): Promise<void> {
    const { ifMatch, ...rest } = options;
    const request: RequestOptions = { ...rest, method: "DELETE" };
    if (ifMatch !== undefined) request.headers = { "If-Match": ifMatch };
    await send(this, filePath("/api/files", node, collection, file), request);
  }

  /** Where a file is served. */
  contentUrl(node: string, collection: string, file: string): string {
    return this.baseUrl + filePath("/api/content", node, collection, file);
  }

  // Operation

  whoami(options: CallOptions = {}): Promise<WhoAmI> {
    return this.json("/api/whoami", { ...options });
  }

  /** What the server's process knows about the hub at a node path or process address. */
  why(address: string, options: CallOptions = {}): Promise<Why> {
    return this.json(`/api/why/${encodePath(address)}`, { ...options });
  }

  /** What the silos of the cluster say of themselves now; for an Admin of the root scope. */
  clusterStatus(options: CallOptions = {}): Promise<ClusterStatus> {
    return this.json("/api/cluster", { ...options });
  }

  /** The same each second, until the signal aborts; see followStates. */
  watchCluster(options: StatesOptions): AsyncGenerator<ClusterStatus> {
    return followStates(this, "/api/cluster/watch", "status", options);
  }

  /** The state of `hubmesh demo` whenever it changes; any other server refuses with `not_found`. */
  demoState(options: StatesOptions): AsyncGenerator<DemoState> {
    return followStates(this, "/api/demo/state", "state", options);
  }

  /** Does something to a silo of the demo; `conflict` when its state does not allow it. */
  async demoAct(silo: string, action: DemoAction, options: CallOptions = {}): Promise<void> {
    await send(this, `/api/demo/silos/${encodePath(silo)}`, { ...options, method: "POST", json: { action } });
  }

  /** Cuts the link between two silos of the demo, or heals it. */
  async demoLink(a: string, b: string, cut: boolean, options: CallOptions = {}): Promise<void> {
    await send(this, "/api/demo/links", { ...options, method: "POST", json: { a, b, cut } });
  }

  /** Recent read lapses, newest first. */
  lapses(options: CallOptions = {}): Promise<Json> {
    return this.json("/api/lapses", { ...options });
  }

  /** Starts an import of a directory on the server; the answer is the path of its activity. */
  async import(source: string, options: CallOptions & { into?: string; content?: string } = {}): Promise<string> {
    const { into = "", content = "", ...rest } = options;
    return (await this.json<{ activity: string }>("/api/import", { ...rest, method: "POST", json: { source, into, content } })).activity;
  }

  /** Asks an activity to stop. It stops by itself, soon after. */
  cancelActivity(path: string, options: CallOptions = {}): Promise<MeshNode> {
    return this.patch(path, { content: { requestedStatus: "Cancelled" } }, options);
  }

  createToken(subject: string, name = "", options: CallOptions = {}): Promise<{ token: string; id: string }> {
    return this.json("/api/tokens", { ...options, method: "POST", json: { subject, name } });
  }

  /** Ends the session of the cookie. */
  async logout(options: CallOptions = {}): Promise<void> {
    await send(this, "/logout", { ...options, method: "POST" });
  }

  private json<T>(route: string, options: RequestOptions): Promise<T> {
    return sendForJson<T>(this, route, options);
  }
}

function nodes(path: string): string {
  return `/api/nodes/${encodePath(path)}`;
}

function filePath(route: string, node: string, collection: string, file: string): string {
  return `${route}/${encodePath(node)}/${encodePath(collection)}/${encodePath(file)}`;
}

function write(method: string, options: WriteOptions, json?: unknown): RequestOptions {
  const { ifMatch, keepalive, signal } = options;
  const request: RequestOptions = { method, signal };
  if (json !== undefined) request.json = json;
  if (keepalive !== undefined) request.keepalive = keepalive;
  if (ifMatch !== undefined) request.headers = { "If-Match": `"${ifMatch}"` };
  return request;
}
