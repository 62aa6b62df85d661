import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { MirrorState } from "../src/mirror.ts";
import { watchNode } from "../src/watch.ts";
import type { Json } from "../src/types.ts";
import { FakeServer, fullOf, nodeOf } from "./fake.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

async function watch(server: FakeServer, run: (states: MirrorState[], failure: () => unknown) => Promise<void>): Promise<void> {
  const abort = new AbortController();
  const states: MirrorState[] = [];
  let failure: unknown;
  const done = (async () => {
    for await (const state of watchNode(server.client(), "a", { signal: abort.signal, random: () => 0 })) states.push(state);
  })().catch((cause: unknown) => { failure = cause; });
  await vi.advanceTimersByTimeAsync(0);
  await run(states, () => failure);
  abort.abort();
  await vi.advanceTimersByTimeAsync(1);
  await done;
}

describe("watching one node", () => {
  it("resumes from the version held when the connection is lost", async () => {
    const server = new FakeServer();
    await watch(server, async (states) => {
      expect(server.last.headers.get("last-event-id")).toBeNull();
      server.last.event("full", fullOf("a", 3));
      await vi.advanceTimersByTimeAsync(0);
      server.last.break();
      await vi.advanceTimersByTimeAsync(1);
      expect(server.last.headers.get("last-event-id")).toBe("3");
      server.last.event("patch", { version: 5, basedOn: 3, patch: { name: "v5" } });
      await vi.advanceTimersByTimeAsync(0);
      expect(states.map((s) => [s.version, s.node?.name])).toEqual([[3, "v3"], [5, "v5"]]);
    });
  });

  it("fetches on a gap and yields the result once", async () => {
    const server = new FakeServer();
    server.nodes.set("a", nodeOf("a", 6));
    await watch(server, async (states) => {
      server.last.event("full", fullOf("a", 3));
      server.last.event("patch", { version: 6, basedOn: 5, patch: { name: "v6" } });
      await vi.advanceTimersByTimeAsync(0);
      expect([states.at(-1)?.version, server.gets]).toEqual([6, 1]);
    });
  });

  it("tells a deletion and goes on when the path is created again", async () => {
    const server = new FakeServer();
    await watch(server, async (states) => {
      server.last.event("full", fullOf("a", 1));
      server.last.event("deleted", { version: 2 });
      server.last.event("full", fullOf("a", 3));
      await vi.advanceTimersByTimeAsync(0);
      expect(states.map((s) => s.status)).toEqual(["live", "deleted", "live"]);
    });
  });

  it("throws the reason when the server ends it for good", async () => {
    const server = new FakeServer();
    await watch(server, async (_states, failure) => {
      server.last.event("end", { code: "forbidden", status: 403, retry: "never" } as Json);
      await vi.advanceTimersByTimeAsync(0);
      expect(failure()).toHaveProperty("code", "forbidden");
    });
  });
});
