import { HubmeshError } from "./errors.ts";
import { applyMergePatch, equalJson, isObject } from "./merge.ts";
import type { Json, MeshNode } from "./types.ts";

/**
 * The mirror of one node, as a pure state machine: frames and answers go in, a new state and what to
 * do next come out. It knows no connection, clock or timer; the shell in live.ts owns these.
 *
 * The rules: a patch applies only on the very version it names; otherwise the node is fetched once,
 * and the patches that arrive meanwhile wait. A version never goes back, except by the first full
 * frame of a connection, which is what the server holds now (a store may have been restored).
 */
export interface MirrorState {
  readonly status: "loading" | "live" | "deleted" | "failed";
  /** Version of the node held, or of its deletion; 0 before the first frame. */
  readonly version: number;
  readonly node: MeshNode | undefined;
  readonly error: HubmeshError | undefined;
  /** Machinery: a fetch is in flight, the patches that wait for it, and how many fetches in a row did not help. */
  readonly fetching: boolean;
  readonly waiting: readonly PatchFrame[];
  readonly useless: number;
  /** The next full frame is taken whatever its version. */
  readonly latch: boolean;
}

/** With reset the server has lost what is held, as by a failover: the frame counts whatever its version. */
export interface FullFrame { kind: "full"; version: number; node: MeshNode; reset?: true }
export interface PatchFrame { kind: "patch"; version: number; basedOn: number; patch: Json }
export interface DeletedFrame { kind: "deleted"; version: number; reset?: true }
export interface EndFrame { kind: "end"; error: HubmeshError }
export type Frame = FullFrame | PatchFrame | DeletedFrame | EndFrame;

export type MirrorEvent =
  | Frame
  | { kind: "connected" }
  | { kind: "fetched"; node: MeshNode }
  | { kind: "fetch-failed"; error: HubmeshError };

export interface MirrorStep {
  state: MirrorState;
  /** The caller fetches the node and reports `fetched` or `fetch-failed`. */
  fetch: boolean;
}

/** Patches that wait for a fetch; one more drops them all, and the fetch is judged by the next frame. */
export const maxWaiting = 64;
/** Fetches in a row that did not bring the mirror up to date, after which it fails visibly. */
export const maxUseless = 3;

export const initialMirror: MirrorState = {
  status: "loading", version: 0, node: undefined, error: undefined, fetching: false, waiting: [], useless: 0, latch: true,
};

export function stepMirror(state: MirrorState, event: MirrorEvent): MirrorStep {
  switch (event.kind) {
    case "connected":
      return keep({ ...state, latch: true });
    case "full":
      if (!state.latch && event.reset !== true && event.version < state.version) return keep(state);
      return replay(hold({ ...state, latch: false, useless: 0, waiting: event.reset === true ? [] : state.waiting }, event.version, event.node));
    case "deleted":
      if (event.version < state.version && !state.latch && event.reset !== true) return keep(state);
      return keep({ ...state, latch: false, status: "deleted", version: event.version, node: undefined, error: undefined, waiting: [], useless: 0 });
    case "end":
      return keep({ ...state, status: "failed", error: event.error, waiting: [] });
    case "patch":
      return patch(state, event);
    case "fetched":
      return fetched(state, event.node);
    case "fetch-failed":
      return useless({ ...state, fetching: false, waiting: [] }, event.error);
  }
}

function keep(state: MirrorState): MirrorStep {
  return { state, fetch: false };
}

/** Holds a node. One that equals what is held keeps its identity, so that nothing is drawn again. */
function hold(state: MirrorState, version: number, node: MeshNode): MirrorState {
  const same = state.node !== undefined && equalJson(state.node as unknown as Json, node as unknown as Json);
  return { ...state, status: "live", version, node: same ? state.node : node, error: undefined };
}

function patch(state: MirrorState, frame: PatchFrame): MirrorStep {
  if (frame.version <= state.version && state.status === "live") return keep(state);
  if (state.status === "live" && frame.basedOn === state.version && state.node !== undefined) {
    const next = patched(state.node, frame.patch);
    if (next !== undefined) {
      return keep({ ...hold(state, frame.version, { ...next, version: frame.version }), useless: 0 });
    }
  }
  const waiting = state.waiting.length < maxWaiting ? [...state.waiting, frame] : [];
  return { state: { ...state, waiting, fetching: true }, fetch: !state.fetching };
}

function fetched(state: MirrorState, node: MeshNode): MirrorStep {
  const ended: MirrorState = { ...state, fetching: false };
  if (ended.status === "deleted" && node.version <= ended.version) return keep(ended);
  const wanted = ended.waiting.reduce((max, frame) => Math.max(max, frame.version), 0);
  const step = node.version >= ended.version ? replay(hold(ended, node.version, node)) : replay(ended);
  if (step.state.version >= wanted) return keep({ ...step.state, fetching: false, waiting: [], useless: 0 });
  return useless({ ...step.state, fetching: false }, undefined);
}

/** Applies the patches that wait, as far as they fit; what is older than the node held falls out. */
function replay(state: MirrorState): MirrorStep {
  let current = state;
  let rest = state.waiting.filter((frame) => frame.version > current.version);
  for (;;) {
    const next = rest.find((frame) => frame.basedOn === current.version);
    if (next === undefined || current.node === undefined) break;
    const node = patched(current.node, next.patch);
    if (node === undefined) break;
    current = hold(current, next.version, { ...node, version: next.version });
    rest = rest.filter((frame) => frame.version > next.version);
  }
  return keep({ ...current, waiting: rest });
}

/** A fetch that did not help: another one, or a visible failure after some. */
function useless(state: MirrorState, error: HubmeshError | undefined): MirrorStep {
  const count = state.useless + 1;
  if (count < maxUseless && (error === undefined || error.retry !== "never")) {
    return { state: { ...state, useless: count, fetching: true }, fetch: true };
  }
  const failure = error ?? new HubmeshError({
    code: "diverged",
    retry: "after",
    title: "The live view could not be brought up to date",
    detail: `${count} reads in a row gave an older version than the stream announces.`,
  });
  return keep({ ...state, status: "failed", error: failure, waiting: [], useless: count });
}

/** The node after a patch; undefined when the patch does not leave a node. */
function patched(node: MeshNode, patch: Json): MeshNode | undefined {
  const next = applyMergePatch(node as unknown as Json, patch);
  return isObject(next) && typeof next["path"] === "string" ? (next as unknown as MeshNode) : undefined;
}
