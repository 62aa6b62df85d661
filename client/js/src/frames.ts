import { fromProblem, HubmeshError } from "./errors.ts";
import { parseJson } from "./json.ts";
import { isObject } from "./merge.ts";
import type { Frame } from "./mirror.ts";
import type { SseEvent } from "./sse.ts";
import type { Child, Json, JsonObject, MeshNode, QueryResult } from "./types.ts";

/** A message of a live connection: which subscription it is for, and what it says. */
export type LiveMessage = { sub: number; body: Frame | ChildrenFrame | ResultFrame };
export interface ChildrenFrame { kind: "children"; children: Child[] }
export interface ResultFrame { kind: "result"; result: QueryResult }

/** Reads the data of an event. Throws a HubmeshError when it is not what the API says. */
export function parseData(event: SseEvent): JsonObject {
  let data: Json;
  try {
    data = parseJson(event.data);
  } catch (cause) {
    throw malformed(event, cause);
  }
  if (!isObject(data)) throw malformed(event);
  return data;
}

/** Reads an event of `/api/watch` or of a node subscription; undefined for an event of another name. */
export function parseFrame(event: SseEvent, data: JsonObject): Frame | undefined {
  const version = data["version"];
  switch (event.event) {
    case "full":
      if (typeof version !== "number" || !isObject(data["node"])) throw malformed(event);
      return { kind: "full", version, node: { ...data["node"], version } as unknown as MeshNode, ...reset(data) };
    case "patch": {
      const basedOn = data["basedOn"];
      const patch = data["patch"];
      if (typeof version !== "number" || typeof basedOn !== "number" || patch === undefined) throw malformed(event);
      return { kind: "patch", version, basedOn, patch };
    }
    case "deleted":
      if (typeof version !== "number") throw malformed(event);
      return { kind: "deleted", version, ...reset(data) };
    case "end":
    case "sub-end":
      return { kind: "end", error: fromProblem(data) };
    default:
      return undefined;
  }
}

/** What the server has lost is told as such: a lower version then counts. */
function reset(data: JsonObject): { reset?: true } {
  return data["reset"] === true ? { reset: true } : {};
}

/**
 * Reads an event of `/api/live`; undefined for an event of a name that this client does not know.
 * Throws the reason when the event is the end of the whole stream.
 */
export function parseLive(event: SseEvent): LiveMessage | undefined {
  const known = ["full", "patch", "deleted", "end", "sub-end", "children", "result"];
  if (!known.includes(event.event)) return undefined;
  const data = parseData(event);
  const sub = data["sub"];
  if (event.event === "end" && sub === undefined) throw fromProblem(data);
  if (typeof sub !== "number") throw malformed(event);
  if (event.event === "children") {
    if (!Array.isArray(data["children"])) throw malformed(event);
    return { sub, body: { kind: "children", children: data["children"] as unknown as Child[] } };
  }
  if (event.event === "result") {
    if (!Array.isArray(data["nodes"])) throw malformed(event);
    const result = { nodes: data["nodes"] as unknown as MeshNode[], truncated: data["truncated"] === true };
    return { sub, body: { kind: "result", result } };
  }
  const frame = parseFrame(event, data);
  return frame === undefined ? undefined : { sub, body: frame };
}

function malformed(event: SseEvent, cause?: unknown): HubmeshError {
  return new HubmeshError({
    code: "unexpected",
    retry: "after",
    title: "An event of the live connection can not be read",
    detail: `event "${event.event}" of ${event.data.length} characters`,
    cause,
  });
}
