import type { Rendered } from "@hubmesh/client";
import { hasCode } from "@hubmesh/client";
import { useLoad, type Loaded } from "../app/hooks.ts";
import { useSession } from "../app/session.ts";

/** The node's document, read again for each version. `html` is "" when the node has none. */
export function useRendered(path: string, version: number | undefined): Loaded<Rendered> {
  const { client } = useSession();
  const key = version === undefined ? undefined : `render ${path}\n${version}`;
  return useLoad(key, async (signal) => {
    try {
      return await client.render(path, { signal });
    } catch (cause) {
      // The node is there, as its mirror shows: what is not found is its document.
      if (hasCode(cause, "not_found", "unsupported_media_type")) return { path, version: version ?? 0, html: "" };
      throw cause;
    }
  });
}
