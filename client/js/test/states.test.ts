import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { atOnceMs } from "../src/backoff.ts";
import type { HubmeshError } from "../src/errors.ts";
import type { DemoState } from "../src/operation.ts";
import type { Json } from "../src/types.ts";
import { FakeServer, problem } from "./fake.ts";

async function pass(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function follow(server: FakeServer) {
  const abort = new AbortController();
  const seen: string[] = [];
  const links: (string | undefined)[] = [];
  let failure: HubmeshError | undefined;
  let ended = false;
  void (async () => {
    try {
      const options = { signal: abort.signal, random: () => 0.5, onLink: (lost: HubmeshError | undefined) => links.push(lost?.code) };
      for await (const state of server.client().demoState(options)) seen.push(state.at);
    } catch (cause) {
      failure = cause as HubmeshError;
    }
    ended = true;
  })();
  return { abort, seen, links, get failure() { return failure; }, get ended() { return ended; } };
}

const state = (at: string): Json => ({ at, node: { path: "Demo/Page", servedBy: [] }, silos: [], links: [], events: [] } satisfies DemoState as unknown as Json);

describe("a stream of whole states", () => {
  it("yields each state and skips what it does not know", async () => {
    const server = new FakeServer();
    const followed = follow(server);
    await pass();
    server.last.event("state", state("1"));
    server.last.event("novelty", {});
    server.last.event("state", state("2"));
    await pass();
    expect([followed.seen, followed.links, server.last.url.pathname]).toEqual([["1", "2"], [undefined], "/api/demo/state"]);
    followed.abort.abort();
    await pass();
    expect([followed.ended, followed.failure, server.last.aborted]).toEqual([true, undefined, true]);
  });

  it("is opened again at once when it breaks, and more and more slowly while that does not help", async () => {
    const server = new FakeServer();
    const followed = follow(server);
    await pass();
    server.last.event("state", state("1"));
    await pass();
    const from = Date.now();
    server.asked.length = 0;
    server.refusal = () => Promise.reject(new TypeError("connection refused"));
    server.last.break();
    await pass(60_000);
    expect(server.asked[0]).toBe(from + atOnceMs / 2);
    expect(server.asked.length).toBeLessThan(14);
    expect(followed.links[1]).toBe("network");
    server.refusal = undefined;
    await pass(16_000);
    server.last.event("state", state("2"));
    await pass();
    expect([followed.seen, followed.links.at(-1)]).toEqual([["1", "2"], undefined]);
    followed.abort.abort();
  });

  it("waits as long as the server asks when it ends the stream", async () => {
    const server = new FakeServer();
    const followed = follow(server);
    await pass();
    server.last.event("end", { code: "overloaded", status: 503, retry: "after", retryAfter: 4 });
    await pass(3_999);
    expect([server.streams.length, followed.links]).toEqual([1, [undefined, "overloaded"]]);
    await pass(2_000);
    expect(server.streams.length).toBe(2);
    followed.abort.abort();
  });

  it("fails when the server refuses for good", async () => {
    const server = new FakeServer();
    server.refusal = () => problem(404, "not_found");
    const followed = follow(server);
    await pass(60_000);
    expect([followed.ended, followed.failure?.code, server.asked.length]).toEqual([true, "not_found", 1]);
  });
});
