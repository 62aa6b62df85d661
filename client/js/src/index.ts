/**
 * @hubmesh/client: the verbs of the hubmesh HTTP API and live mirrors of what it holds. It has no
 * dependency, runs in browsers and in Node, and keeps no state outside the objects that it hands out.
 */
export { Client, type CallOptions, type ClientOptions, type FileWriteOptions, type WriteOptions } from "./client.ts";
export { fromProblem, hasCode, HubmeshError, type RetryClass } from "./errors.ts";
export { ExactNumber, parseJson, printJson } from "./json.ts";
export { Live, type LiveOptions, type LiveStatus } from "./live.ts";
export { applyMergePatch, diffMergePatch, equalJson, isObject } from "./merge.ts";
export type { MirrorState } from "./mirror.ts";
export type * from "./operation.ts";
export { encodePath, joinPath, lastSegment, parentPath, pathAndAncestors, trimPath } from "./path.ts";
export { SseParser, type SseEvent } from "./sse.ts";
export type { StatesOptions } from "./states.ts";
export type { Snapshot, View } from "./topic.ts";
export * from "./types.ts";
export { watchNode, type WatchOptions } from "./watch.ts";
