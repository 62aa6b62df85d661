// A mesh in memory, for working on the page and for its tests: just enough of docs/api.md, no permissions.
import { EventEmitter } from "node:events";

/** @typedef {import("@hubmesh/client").MeshNode} MeshNode */
/** @typedef {import("@hubmesh/client").JsonObject} JsonObject */

export class Problem extends Error {
  /** @param {number} status @param {string} code @param {string} detail @param {"never" | "now" | "after"} [retry] */
  constructor(status, code, detail, retry = "never") {
    super(detail);
    Object.assign(this, { status, code, retry });
    this.status = status;
    this.code = code;
    this.retry = retry;
  }

  get body() {
    const title = this.code.replaceAll("_", " ");
    return { type: `/api/errors#${this.code}`, title: title[0]?.toUpperCase() + title.slice(1), status: this.status, detail: this.message, code: this.code, retry: this.retry };
  }
}

const writable = ["mainNode", "nodeType", "name", "description", "category", "icon", "order", "preRenderedHtml", "content", "state", "desiredId", "excludeFromContext", "syncBehavior"];

export class MockStore extends EventEmitter {
  /** @type {Map<string, MeshNode>} */
  nodes = new Map();
  /** @type {Map<string, MeshNode[]>} */
  history = new Map();
  /** @type {Map<string, { bytes: Buffer, type: string, modified: string }>} */
  files = new Map();

  constructor() {
    super();
    this.setMaxListeners(0);
  }

  /** @param {string} path */
  get(path) {
    const node = this.nodes.get(path);
    if (node === undefined) throw new Problem(404, "not_found", `There is no node "${path}", or it is not yours to read.`);
    return node;
  }

  /** @param {string} path @param {any} fields @param {string} by */
  create(path, fields, by) {
    if (this.nodes.has(path)) throw new Problem(409, "exists", `"${path}" exists already.`);
    const space = path.split("/")[0] ?? "";
    if (path !== space && !this.nodes.has(space)) throw new Problem(409, "partition_missing", `There is no space "${space}": create it first.`);
    return this.write(path, fields, by, undefined);
  }

  /** @param {string} path @param {any} fields @param {string} by @param {string | undefined} ifMatch */
  put(path, fields, by, ifMatch) {
    this.check(path, ifMatch);
    return this.write(path, fields, by, this.nodes.get(path));
  }

  /** @param {string} path @param {JsonObject} patch @param {string} by @param {string | undefined} ifMatch */
  patch(path, patch, by, ifMatch) {
    const old = this.get(path);
    this.check(path, ifMatch);
    const fields = merge(Object.fromEntries(writable.filter((f) => /** @type {any} */ (old)[f] !== undefined).map((f) => [f, /** @type {any} */ (old)[f]])), patch);
    return this.write(path, fields, by, old);
  }

  /** @param {string} path @param {boolean} recursive */
  delete(path, recursive) {
    const old = this.get(path);
    const below = [...this.nodes.keys()].filter((p) => p.startsWith(`${path}/`));
    if (below.length > 0 && !recursive) throw new Problem(409, "has_children", `${below.length} nodes lie below "${path}".`);
    for (const p of [...below, path]) {
      const version = (this.nodes.get(p)?.version ?? 0) + 1;
      this.nodes.delete(p);
      this.emit("change", { path: p, deleted: version });
    }
    return { deleted: below.length + 1, version: old.version + 1 };
  }

  /** @param {string} path @param {string | undefined} ifMatch */
  check(path, ifMatch) {
    if (ifMatch !== undefined && ifMatch !== `"${this.nodes.get(path)?.version}"`) throw new Problem(412, "stale", `"${path}" has version ${this.nodes.get(path)?.version}.`, "now");
  }

  /** @param {string} path @param {any} fields @param {string} by @param {MeshNode | undefined} old @returns {MeshNode} */
  write(path, fields, by, old) {
    const past = this.history.get(path) ?? [];
    const at = path.lastIndexOf("/");
    const kept = Object.fromEntries(writable.filter((f) => fields[f] !== undefined && fields[f] !== null && fields[f] !== "").map((f) => [f, fields[f]]));
    const now = new Date().toISOString();
    const node = /** @type {MeshNode} */ ({
      path, id: path.slice(at + 1), ...(at < 0 ? {} : { namespace: path.slice(0, at) }), mainNode: path, state: "Active", ...kept,
      version: 0, createdDate: old?.createdDate ?? now, createdBy: old?.createdBy ?? by, lastModified: now, lastModifiedBy: by,
    });
    if (old !== undefined && JSON.stringify({ ...old, ...stamps }) === JSON.stringify({ ...node, ...stamps })) return old;
    node.version = (past.at(-1)?.version ?? 0) + 1;
    this.nodes.set(path, node);
    this.history.set(path, [...past, node].slice(-1000));
    this.emit("change", { path, node, old });
    return node;
  }

  /** @param {string} path */
  children(path) {
    const prefix = path === "" ? "" : `${path}/`;
    const found = new Map();
    for (const node of this.nodes.values()) {
      if (!node.path.startsWith(prefix) || node.path === path) continue;
      const id = node.path.slice(prefix.length).split("/")[0] ?? "";
      if (id.startsWith("_")) continue;
      const child = found.get(id) ?? { path: prefix + id, id, version: 0, hasChildren: false };
      if (node.path === prefix + id) {
        const { name, nodeType, icon, order, version } = node;
        Object.assign(child, JSON.parse(JSON.stringify({ name, nodeType, icon, order, version })));
      } else child.hasChildren = true;
      found.set(id, child);
    }
    return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** A small part of the query language: words, field:value, scopes over everything, limit. @param {string} q */
  query(q) {
    let limit = 100;
    /** @type {((node: any) => boolean)[]} */
    const tests = [];
    for (const term of q.match(/"[^"]*"|\S+/g) ?? []) {
      const [, field, value = ""] = /^([A-Za-z.]+):(.*)$/.exec(term) ?? [];
      if (field === undefined) {
        const word = fold(term.replaceAll("\"", ""));
        tests.push((n) => fold([n.name ?? "", n.path, n.description ?? "", n.nodeType ?? ""].join(" ")).includes(word));
      } else if (field === "name") {
        const word = fold(value.replaceAll("*", ""));
        tests.push((n) => fold(n.name ?? "").includes(word));
      } else if (field === "limit") limit = Number(value);
      else if (field === "path") tests.push((n) => n.path.startsWith(`${value}/`));
      else if (!["scope", "context", "sort", "is"].includes(field)) tests.push((n) => [n, n.content].some((of) => field.split(".").reduce((at, key) => at?.[key], of) === value));
    }
    const nodes = [...this.nodes.values()].filter((n) => tests.every((test) => test(n)) && (q.includes("Activity") || !n.path.includes("/_")));
    return { nodes: nodes.slice(0, limit), truncated: nodes.length > limit };
  }
}

const stamps = { version: 0, lastModified: "", lastModifiedBy: "" };

/** @param {string} text */
function fold(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}

/** @param {any} target @param {any} patch @returns {any} */
export function merge(target, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const out = target !== null && typeof target === "object" && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete out[key];
    else out[key] = merge(out[key], value);
  }
  return out;
}

/** The merge patch between two nodes; undefined when it can not be said. @param {any} from @param {any} to @returns {any} */
export function difference(from, to) {
  const out = /** @type {any} */ ({});
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (JSON.stringify(from[key]) === JSON.stringify(to[key])) continue;
    if (to[key] === undefined) out[key] = null;
    else if (isPlain(from[key]) && isPlain(to[key])) {
      const inner = difference(from[key], to[key]);
      if (inner === undefined) return undefined;
      out[key] = inner;
    } else if (JSON.stringify(to[key]).includes("null")) return undefined;
    else out[key] = to[key];
  }
  return out;
}

/** @param {any} value */
function isPlain(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
