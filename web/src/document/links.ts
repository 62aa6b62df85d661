import { encodePath, parentPath } from "@hubmesh/client";
import { hrefOf } from "../app/place.ts";

/**
 * Where a relative link of a node's document leads: the node itself is the folder that it starts from,
 * `../x` is a sibling. A link to a Markdown file, as documents in a repository have them, is a sibling
 * without its ending. Absolute links and those with a scheme stay as they are (undefined).
 */
export function resolveLink(nodePath: string, href: string): string | undefined {
  if (href === "" || /^([a-z][a-z0-9+.-]*:|\/)/i.test(href)) return undefined;
  if (href.startsWith("#")) return undefined;
  const [, target = "", hash = ""] = /^([^#]*)(?:#(.*))?$/.exec(href) ?? [];
  const path = decode(target.split("?", 1)[0] ?? "");
  const isFile = /\.md$/i.test(path);
  const resolved = walk(isFile ? parentPath(nodePath) : nodePath, path.replace(/\.md$/i, ""));
  return hrefOf({ path: resolved, hash: decode(hash) });
}

/** Where a relative image of a node's document is served: in the node's own or inherited collection. */
export function resolveImage(nodePath: string, src: string): string | undefined {
  if (src === "" || /^([a-z][a-z0-9+.-]*:|\/)/i.test(src)) return undefined;
  const path = decode(src.split(/[?#]/, 1)[0] ?? "");
  const resolved = walk(nodePath, path);
  try {
    return `/api/content/${encodePath(resolved)}`;
  } catch {
    return undefined;
  }
}

function walk(from: string, path: string): string {
  const segments = from === "" ? [] : from.split("/");
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments.join("/");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
