import { HubmeshError } from "./errors.ts";

/** Node paths in URLs: split on "/", each segment percent-encoded once. Case is kept. */

/** The path without outer slashes. */
export function trimPath(path: string): string {
  return path.replace(/^\/+|\/+$/g, "");
}

/** Encodes a node path for a URL. A segment that a URL would swallow (".", "..", empty) is refused. */
export function encodePath(path: string): string {
  const trimmed = trimPath(path);
  if (trimmed === "") return "";
  return trimmed.split("/").map((segment) => {
    if (segment === "" || segment === "." || segment === "..") {
      throw new HubmeshError({
        code: "invalid_path",
        status: 400,
        title: "Not a node path",
        detail: `"${path}" has an empty segment, "." or "..".`,
      });
    }
    return encodeURIComponent(segment);
  }).join("/");
}

/** The path above; "" above a space. */
export function parentPath(path: string): string {
  const at = path.lastIndexOf("/");
  return at < 0 ? "" : path.slice(0, at);
}

/** The last segment. */
export function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Joins a namespace and an id. */
export function joinPath(namespace: string, id: string): string {
  return namespace === "" ? id : `${namespace}/${id}`;
}

/** All paths from the space down to the path itself. */
export function pathAndAncestors(path: string): string[] {
  const out: string[] = [];
  if (path === "") return out;
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) out.push(path.slice(0, at));
  out.push(path);
  return out;
}
