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

  it("comes back with the id of the last event that counted, as it got it", async () => {
    const server = new FakeServer();
    server.nodes.set("a", nodeOf("a", 8));
    await watch(server, async (states) => {
      const resumed = async (): Promise<string | null> => {
        await vi.advanceTimersByTimeAsync(0);
        server.last.break();
        await vi.advanceTimersByTimeAsync(20_000);
        return server.last.headers.get("last-event-id");
      };
      server.last.event("full", fullOf("a", 3), "3.one");
      expect(await resumed()).toBe("3.one");
      server.last.event("patch", { version: 4, basedOn: 3, patch: { name: "lost" } }, "4.two");
      server.last.event("full", fullOf("a", 5), "5.three");
      server.last.event("full", fullOf("a", 2), "2.late"); // does not count
      expect(await resumed()).toBe("5.three");
      server.last.event("full", { ...(fullOf("a", 5) as object), reset: true } as Json, "5.new");
      expect(await resumed()).toBe("5.new");
      server.last.event("patch", { version: 7, basedOn: 6, patch: { name: "gap" } }, "7.four");
      expect(await resumed()).toBe("8"); // was fetched
      server.last.event("deleted", { version: 9 }, "9.0");
      expect(await resumed()).toBe("9.0");
      expect(states.map((s) => [s.version, s.node?.name])).toEqual([[3, "v3"], [4, "lost"], [5, "v5"], [8, "v8"], [9, undefined]]);
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
