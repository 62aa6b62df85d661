import { encodePath } from "@hubmesh/client";

/** A place in the page: a node, what of it is shown, and details. Its URL is `/{path}?tab=…`. */
export interface Place {
  readonly path: string;
  readonly tab: Tab;
  /** A version that is looked at, in the tab of versions. */
  readonly at: number | undefined;
  /** A folder, in the tab of files. */
  readonly dir: string;
  /** An anchor in the document. */
  readonly hash: string;
}

export const tabs = ["view", "edit", "data", "versions", "files"] as const;
export type Tab = (typeof tabs)[number];

/** Screens of the page's own. No space begins with "_", so they hide no node. */
export const clusterPath = "_cluster";
export const demoPath = "_demo";

/** First segments that the server keeps for itself. */
const reserved = new Set(["api", "static", "login", "logout", "alive", "ready", "metrics", "_app"]);

export function placeOf(url: URL): Place {
  const tab = url.searchParams.get("tab") as Tab;
  const at = Number(url.searchParams.get("at"));
  return {
    path: url.pathname.split("/").filter((segment) => segment !== "").map(decode).join("/"),
    tab: tabs.includes(tab) ? tab : "view",
    at: Number.isSafeInteger(at) && at > 0 ? at : undefined,
    dir: url.searchParams.get("dir") ?? "",
    hash: decode(url.hash.slice(1)),
  };
}

export function hrefOf(place: Partial<Place> & { path: string }): string {
  const parameters = new URLSearchParams();
  if (place.tab !== undefined && place.tab !== "view") parameters.set("tab", place.tab);
  if (place.at !== undefined) parameters.set("at", String(place.at));
  if (place.dir !== undefined && place.dir !== "") parameters.set("dir", place.dir);
  const query = parameters.toString();
  const hash = place.hash === undefined || place.hash === "" ? "" : `#${encodeURIComponent(place.hash)}`;
  return `/${safePath(place.path)}${query === "" ? "" : `?${query}`}${hash}`;
}

/** Whether a URL is a place in the page, and not a file or a route of the server. */
export function isPlace(url: URL, origin: string): boolean {
  return url.origin === origin && !reserved.has(url.pathname.split("/")[1] ?? "");
}

/** A path that is no node path is shown as it was typed: the server says what is wrong with it. */
function safePath(path: string): string {
  try {
    return encodePath(path);
  } catch {
    return path.split("/").map(encodeURIComponent).join("/");
  }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
