import { describe, expect, it } from "vitest";
import { HubmeshError } from "../src/errors.ts";
import { initialMirror, maxUseless, stepMirror, type MirrorEvent, type MirrorState } from "../src/mirror.ts";
import type { MeshNode } from "../src/types.ts";
import { int, seeded } from "./random.ts";

function node(version: number, name = `v${version}`): MeshNode {
  return { path: "a", id: "a", name, version };
}
function full(version: number): MirrorEvent {
  return { kind: "full", version, node: node(version) };
}
function patch(basedOn: number, version = basedOn + 1): MirrorEvent {
  return { kind: "patch", basedOn, version, patch: { name: `v${version}` } };
}
function run(...events: MirrorEvent[]): { state: MirrorState; fetches: number } {
  let state = initialMirror;
  let fetches = 0;
  for (const event of events) {
    const step = stepMirror(state, event);
    state = step.state;
    if (step.fetch) fetches++;
  }
  return { state, fetches };
}

describe("a mirror", () => {
  // data SY-3
  it("applies a patch on the version that it names", () => {
    const { state, fetches } = run(full(3), patch(3));
    expect([state.version, state.node?.name, fetches]).toEqual([4, "v4", 0]);
  });

  // data §2
  it("goes back with a server that has lost what is held, and on from there", () => {
    const back: MirrorEvent = { kind: "full", version: 3, node: node(3), reset: true };
    expect(run(full(5), full(3)).state.version).toBe(5); // the control: it comes too late
    expect(run(full(5), patch(7), back, patch(3)).state).toMatchObject({ status: "live", version: 4, node: { name: "v4" }, waiting: [] });
    expect(run(full(5), { kind: "deleted", version: 2, reset: true }).state).toMatchObject({ status: "deleted", version: 2 });
    expect(run(full(5), { kind: "deleted", version: 2 }).state).toMatchObject({ status: "live", version: 5 });
  });

  // data SY-3
  it("fetches once on a gap, and applies the patches that waited", () => {
    const { state, fetches } = run(full(3), patch(5), patch(6), { kind: "fetched", node: node(5) });
    expect([state.version, state.node?.name, fetches]).toEqual([7, "v7", 1]);
  });

  // data SY-4
  it("drops what is older than what it holds", () => {
    const { state, fetches } = run(full(5), full(4), patch(3, 4), patch(4, 5));
    expect([state.version, state.node?.name, fetches]).toEqual([5, "v5", 0]);
  });

  // data SY-5
  it("takes the first full frame of a connection whatever its version, and only that one", () => {
    const { state } = run(full(9), { kind: "connected" }, full(2), full(1));
    expect([state.version, state.node?.name]).toEqual([2, "v2"]);
  });

  // data SY-6
  it("fetches when a patch comes before any base", () => {
    expect(run(patch(4)).fetches).toBe(1);
  });

  // fault 21
  it("fails visibly after some fetches in a row that did not help", () => {
    const stale: MirrorEvent = { kind: "fetched", node: node(3) };
    const { state, fetches } = run(full(3), patch(7), stale, stale, stale);
    expect([state.status, state.error?.code, fetches]).toEqual(["failed", "diverged", maxUseless]);
  });

  // fault 21
  it("recovers from a failure with the next full frame", () => {
    const stale: MirrorEvent = { kind: "fetched", node: node(3) };
    const { state } = run(full(3), patch(7), stale, stale, stale, { kind: "connected" }, full(8));
    expect([state.status, state.version, state.error]).toEqual(["live", 8, undefined]);
  });

  it("goes on with the node when the path is created again", () => {
    const { state } = run(full(3), { kind: "deleted", version: 4 }, full(5));
    expect([state.status, state.version]).toEqual(["live", 5]);
  });

  it("does not bring a node back that was deleted while it was fetched", () => {
    const { state } = run(full(3), patch(5), { kind: "deleted", version: 7 }, { kind: "fetched", node: node(6) });
    expect([state.status, state.version, state.node]).toEqual(["deleted", 7, undefined]);
  });

  it("keeps the node's identity when a full frame says the same again", () => {
    const first = run(full(3)).state;
    expect(stepMirror(first, full(3)).state.node).toBe(first.node);
  });

  it("shows the reason when the server ends it", () => {
    const error = new HubmeshError({ code: "forbidden", status: 403 });
    const { state } = run(full(3), { kind: "end", error });
    expect([state.status, state.error]).toEqual(["failed", error]);
  });

  // fault 36
  it("ends at the owner's version whatever is lost, repeated or late, and never goes back", () => {
    for (let seed = 1; seed <= 500; seed++) {
      const random = seeded(seed);
      let state = initialMirror;
      let owner = 1;
      let fetching = false;
      let seen = 0;
      const feed = (event: MirrorEvent): void => {
        const step = stepMirror(state, event);
        state = step.state;
        if (step.fetch) {
          expect(fetching, `seed ${seed}: one fetch at a time`).toBe(false);
          fetching = true;
        }
        expect(state.version, `seed ${seed}: never back`).toBeGreaterThanOrEqual(seen);
        seen = state.version;
        if (state.node !== undefined) expect(state.node.name, `seed ${seed}`).toBe(`v${state.version}`);
      };
      feed(full(1));
      let sent = 1;
      for (let n = 0; n < 60; n++) {
        const dice = random();
        if (dice < 0.5) owner++;
        else if (dice < 0.7 && sent < owner) {
          const from = random() < 0.8 ? sent : Math.max(1, sent - int(random, 3));
          feed({ kind: "patch", basedOn: from, version: owner, patch: { name: `v${owner}` } });
          sent = owner;
        } else if (dice < 0.8) sent = owner; // a frame is lost
        else if (dice < 0.9 && fetching) {
          fetching = false;
          feed({ kind: "fetched", node: node(owner) });
        } else feed(patch(Math.max(1, owner - 1), owner)); // a frame comes again
      }
      if (fetching) {
        fetching = false;
        feed({ kind: "fetched", node: node(owner) });
      }
      owner++;
      feed({ kind: "patch", basedOn: owner - 1, version: owner, patch: { name: `v${owner}` } });
      if (fetching) feed({ kind: "fetched", node: node(owner) });
      expect([state.version, state.node?.name], `seed ${seed}`).toEqual([owner, `v${owner}`]);
    }
  });
});
