import type { ExactNumber } from "./json.ts";

/** Values of the HTTP API, as docs/api.md gives them. Empty fields are left out of the JSON. */

/** A number that JavaScript can not hold as it is written is an {@link ExactNumber}. */
export type Json = null | boolean | number | ExactNumber | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** The lifecycle state of a node. */
export type NodeState = "New" | "Transient" | "Active" | "Rejected" | "Deleted";

/** The fields of a node that a caller may write. */
export interface NodeFields {
  mainNode?: string;
  nodeType?: string;
  name?: string;
  description?: string;
  category?: string;
  icon?: string;
  order?: number;
  preRenderedHtml?: string;
  content?: Json;
  state?: NodeState;
  desiredId?: string;
  excludeFromContext?: string[];
  syncBehavior?: string | number;
}

/** One versioned record of the mesh. */
export interface MeshNode extends NodeFields {
  path: string;
  id: string;
  namespace?: string;
  /** Minted by the owner; one higher with each change. */
  version: number;
  /** Times are RFC 3339 in UTC. */
  createdDate?: string;
  createdBy?: string;
  lastModified?: string;
  lastModifiedBy?: string;
}

/** The writable fields, in the order of the API page. */
export const writableFields = [
  "mainNode", "nodeType", "name", "description", "category", "icon", "order", "preRenderedHtml",
  "content", "state", "desiredId", "excludeFromContext", "syncBehavior",
] as const satisfies readonly (keyof NodeFields)[];

/** The writable part of a node: what a PUT of it would carry. */
export function fieldsOf(node: MeshNode): NodeFields {
  const fields: Record<string, unknown> = {};
  for (const name of writableFields) {
    if (node[name] !== undefined) fields[name] = node[name];
  }
  return fields as NodeFields;
}

/** A direct child. Where a level has no node of its own, version is 0 and there is no name or type. */
export interface Child {
  path: string;
  id: string;
  name?: string;
  nodeType?: string;
  icon?: string;
  order?: number;
  version: number;
  hasChildren: boolean;
}

export interface ChildrenPage {
  children: Child[];
  /** The id to pass as `after` for the next page; empty on the last one. */
  next: string;
}

export interface VersionEntry {
  version: number;
  kind: string;
  at: string;
  by: string;
  name?: string;
}

export interface QueryResult {
  nodes: MeshNode[];
  /** More nodes match than were given. */
  truncated: boolean;
}

export interface Rendered {
  path: string;
  version: number;
  /** Sanitised by the server; empty when the node has no document. */
  html: string;
}

export interface FileEntry {
  name: string;
  dir: boolean;
  /** Bytes. */
  size?: number;
  modified?: string;
  url?: string;
}

/** A file that was stored. */
export interface FileStored {
  url: string;
  size: number;
  /** What `ifMatch` of the next change takes; absent for a file that is too large to have one. */
  etag?: string;
}

export interface FileListing {
  collection: string;
  dir: string;
  entries: FileEntry[];
}

export interface WhoAmI {
  subject: string;
  name: string;
  anonymous: boolean;
  admin: boolean;
}

export type CreateResult =
  | { path: string; version: number; error?: never }
  | { path: string; error: JsonObject; version?: never };

export interface Deleted {
  deleted: number;
  version: number;
  /** Silos that may still answer for what was deleted for a moment, and why: a bound fired before they had heard of it. */
  untold?: string[];
}
