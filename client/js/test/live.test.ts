import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { atOnceMs, earnedMs, firstWindowMs, maxWindowMs, reconnectDelay } from "../src/backoff.ts";
import { Live, type LiveOptions } from "../src/live.ts";
import { silenceLimitMs } from "../src/stream.ts";
import type { Json } from "../src/types.ts";
import { FakeServer, fullOf, nodeOf, problem } from "./fake.ts";
import { seeded } from "./random.ts";

const lives: Live[] = [];

function start(options: LiveOptions = {}): { server: FakeServer; live: Live } {
  const server = new FakeServer();
  const live = new Live(server.client(), options);
  lives.push(live);
  return { server, live };
}

/** Lets promises and timers up to a time run. */
async function pass(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  for (const live of lives.splice(0)) live.close();
  vi.useRealTimers();
});

describe("the live connection", () => {
  it("is one for all subscriptions, in the order nodes, children, queries", async () => {
    const { server, live } = start();
    live.query("nodeType:Activity");
    live.children("");
    live.node("a");
    live.node("b");
    await pass(50);
    expect(server.streams.map((s) => s.subs)).toEqual([["node:a", "node:b", "children:", "query:nodeType:Activity"]]);
    expect(live.status.state).toBe("connected");
  });

  it("shares one subscription between views of the same thing and drops it with the last", async () => {
    const { server, live } = start();
    const [one, two, other] = [live.node("a"), live.node("a"), live.node("b")];
    await pass(50);
    one.close();
    one.close();
    await pass(50);
    expect(server.streams.length).toBe(1);
    two.close();
    await pass(50);
    expect(server.last.subs).toEqual(["node:b"]);
    other.close();
    await pass(50);
    expect([live.status.state, server.last.aborted]).toEqual(["idle", true]);
  });

  it("is opened anew once for many changes, and the old one is read until the new one is accepted", async () => {
    const { server, live } = start();
    const a = live.node("a");
    await pass(50);
    let accept: (() => void) | undefined;
    server.refusal = () => new Promise((resolve) => {
      accept = () => {
        server.refusal = undefined;
        resolve(server.fetch("/api/live?node=a"));
      };
    });
    for (const path of ["b", "c", "d"]) live.node(path);
    await pass(50);
    expect(server.asked.length).toBe(2);
    server.streams[0]?.event("full", { sub: 0, ...(fullOf("a", 1) as object) } as Json);
    await pass();
    expect([a.current.version, server.streams[0]?.aborted]).toEqual([1, false]);
    accept?.();
    await pass();
    expect([server.streams[0]?.aborted, live.status.state]).toEqual([true, "connected"]);
  });

  // fault 35
  it("tells a subscription ready with its first frame, not before", async () => {
    const { server, live } = start();
    const view = live.node("a");
    let ready = false;
    void view.ready().then(() => { ready = true; });
    await pass(100);
    expect(ready).toBe(false);
    server.last.event("full", { sub: 0, ...(fullOf("a", 1) as object) } as Json);
    await pass();
    expect(ready).toBe(true);
    server.last.event("patch", { sub: 0, version: 2, basedOn: 1, patch: { name: "v2" } });
    await pass();
    expect(view.current.value?.name).toBe("v2");
  });

  // data SY-3, fault 36
  it("fetches a node once when a patch builds on a version that it does not hold", async () => {
    const { server, live } = start();
    const view = live.node("a");
    await pass(50);
    server.nodes.set("a", nodeOf("a", 5));
    server.last.event("full", { sub: 0, ...(fullOf("a", 3) as object) } as Json);
    server.last.event("patch", { sub: 0, version: 5, basedOn: 4, patch: { name: "v5" } });
    server.last.event("patch", { sub: 0, version: 6, basedOn: 5, patch: { name: "v6" } });
    await pass();
    expect([server.gets, view.current.version, view.current.value?.name]).toEqual([1, 6, "v6"]);
  });

  it("replaces children and query results as a whole", async () => {
    const { server, live } = start();
    const children = live.children("a");
    const found = live.query("x");
    await pass(50);
    server.last.event("children", { sub: 0, path: "a", children: [{ path: "a/b", id: "b", version: 1, hasChildren: false }] });
    server.last.event("result", { sub: 1, query: "x", nodes: [nodeOf("n", 1) as unknown as Json], truncated: true });
    await pass();
    expect(children.current.value?.map((c) => c.path)).toEqual(["a/b"]);
    expect([found.current.value?.nodes.length, found.current.value?.truncated]).toEqual([1, true]);
  });

  it("keeps the last value and says so while it is lost, and resumes with the next full frame", async () => {
    const { server, live } = start({ random: () => 0.5 });
    const view = live.node("a");
    await pass(50);
    server.last.event("full", { sub: 0, ...(fullOf("a", 1) as object) } as Json);
    await pass();
    server.last.break();
    await pass();
    expect([live.status.state, view.current.status, view.current.version]).toEqual(["reconnecting", "live", 1]);
    expect(live.status.retryAt).toBe(Date.now() + atOnceMs / 2);
    await pass(atOnceMs);
    server.last.event("full", { sub: 0, ...(fullOf("a", 7) as object) } as Json);
    await pass();
    expect([live.status.state, view.current.version]).toEqual(["connected", 7]);
  });

  it("comes back at once when it breaks, by windows when that does not help, and at once again after it has lived", async () => {
    const { server, live } = start({ random: () => 0.5 });
    live.node("a");
    await pass(50);
    const delays: number[] = [];
    for (const lived of [0, 0, 0, earnedMs, earnedMs - 1]) {
      await pass(lived);
      server.last.break();
      await pass();
      delays.push((live.status.retryAt ?? 0) - Date.now());
      await pass(delays.at(-1) ?? 0);
      expect(live.status.state).toBe("connected");
    }
    expect(delays).toEqual([atOnceMs / 2, firstWindowMs / 2, firstWindowMs, atOnceMs / 2, firstWindowMs * 2]);
  });

  // fault 25
  it("notices a dead link by its silence, and a heartbeat keeps it", async () => {
    const { server, live } = start();
    live.node("a");
    await pass(50);
    for (let n = 0; n < 10; n++) {
      await pass(15_000);
      server.last.bytes(": heartbeat\n\n");
    }
    await pass();
    expect([server.streams.length, live.status.state]).toEqual([1, "connected"]);
    await pass(silenceLimitMs + 1);
    expect([live.status.state, live.status.error?.code, server.streams[0]?.aborted]).toEqual(["reconnecting", "network", true]);
    await pass(firstWindowMs);
    expect(server.streams.length).toBe(2);
  });

  it("waits what the server asks for, and the jitter on top", async () => {
    const { server, live } = start({ random: () => 0.25 });
    server.refusal = () => problem(503, "shutting_down", "after", { "retry-after": "30" });
    live.node("a");
    await pass(50);
    expect(live.status.retryAt).toBe(Date.now() - 20 + 30_000 + firstWindowMs / 4);
    await pass(29_000);
    expect(server.asked.length).toBe(1);
  });

  it("reads a new subscription once while there is no connection, and is not ready by that", async () => {
    const { server, live } = start({ random: () => 0.9 });
    const late = live.node("late");
    server.nodes.set("late", nodeOf("late", 2));
    await pass(50);
    server.nodes.set("b", nodeOf("b", 4));
    server.last.break();
    await pass();
    expect(late.current.version).toBe(2);
    const [b, gone] = [live.node("b"), live.node("gone")];
    let ready = false;
    void b.ready().then(() => { ready = true; });
    await pass();
    expect([b.current.version, gone.current.error?.code, ready]).toEqual([4, "not_found", false]);
    await pass(firstWindowMs);
    server.last.event("full", { sub: server.last.subs.indexOf("node:b"), ...(fullOf("b", 5) as object) } as Json);
    await pass();
    expect([b.current.version, ready]).toEqual([5, true]);
  });

  it("takes the server's word for why the whole stream ends and when to come back", async () => {
    const { server, live } = start({ random: () => 0 });
    live.node("a");
    await pass(50);
    server.last.event("end", { code: "overloaded", status: 503, retry: "after", retryAfter: 5, title: "Overloaded" });
    await pass();
    expect([live.status.state, live.status.error?.code, live.status.retryAt]).toEqual(["reconnecting", "overloaded", Date.now() + 5000]);
  });

  it("looks for another server at once when its own goes down, and waits as long as that one asked when there is none", async () => {
    const { server, live } = start({ random: () => 0.5 });
    live.node("a");
    await pass(50);
    server.refusal = () => Promise.reject(new TypeError("connection refused"));
    server.last.event("end", { code: "shutting_down", status: 503, retry: "after", retryAfter: 5, title: "Shutting down" });
    await pass();
    expect([live.status.error?.code, live.status.retryAt]).toEqual(["shutting_down", Date.now() + atOnceMs / 2]);
    await pass(atOnceMs / 2);
    expect([server.asked.length, live.status.retryAt]).toEqual([2, Date.now() + 5000 + firstWindowMs / 2]);
  });

  it("does not come back by itself when it is refused, and does when asked", async () => {
    const { server, live } = start();
    server.refusal = () => problem(401, "unauthenticated");
    live.node("a");
    await pass(600_000);
    expect([server.asked.length, live.status.state, live.status.error?.code]).toEqual([1, "refused", "unauthenticated"]);
    server.refusal = undefined;
    live.reconnect();
    await pass();
    expect(live.status.state).toBe("connected");
  });

  it("ends one subscription alone, and asks again for one that ended for now", async () => {
    const { server, live } = start();
    const [a, b] = [live.node("a"), live.node("b")];
    await pass(50);
    server.last.event("full", { sub: 0, ...(fullOf("a", 1) as object) } as Json);
    server.last.event("sub-end", { sub: 1, code: "starting", status: 503, retry: "after", title: "Starting" });
    await pass();
    expect([a.current.status, b.current.status, b.current.error?.code]).toEqual(["live", "failed", "starting"]);
    await pass(firstWindowMs);
    server.last.event("full", { sub: 1, ...(fullOf("b", 1) as object) } as Json);
    await pass();
    expect([server.streams.length, b.current.status, b.current.error]).toEqual([2, "live", undefined]);
  });

  it("rejects ready of a subscription that is refused, and does not ask again", async () => {
    const { server, live } = start();
    const ready = live.node("a").ready();
    const caught = expect(ready).rejects.toHaveProperty("code", "not_found");
    await pass(50);
    server.last.event("sub-end", { sub: 0, code: "not_found", status: 404, retry: "never" });
    await caught;
    await pass(30_000);
    expect(server.streams.length).toBe(1);
  });

  it("is closed while paused, takes changes of the set along, and comes back at once", async () => {
    const { server, live } = start();
    live.node("a");
    await pass(50);
    live.pause();
    live.node("b");
    await pass(120_000);
    expect([server.streams.length, server.streams[0]?.aborted, live.status.state]).toEqual([1, true, "paused"]);
    live.resume();
    await pass();
    expect([server.last.subs, live.status.state]).toEqual([["node:a", "node:b"], "connected"]);
  });

  it("survives an event that can not be read by connecting anew", async () => {
    const { server, live } = start();
    live.node("a");
    await pass(50);
    server.last.bytes("event: full\ndata: {broken\n\n");
    await pass();
    expect([live.status.state, live.status.error?.code]).toEqual(["reconnecting", "unexpected"]);
  });

  it("skips events and subscriptions that it does not know", async () => {
    const { server, live } = start();
    live.node("a");
    await pass(50);
    server.last.event("novelty", { sub: 0 });
    server.last.event("full", { sub: 9, ...(fullOf("z", 1) as object) } as Json);
    await pass();
    expect(live.status.state).toBe("connected");
  });

  it("refuses one subscription too many, visibly", async () => {
    const { live } = start({ maxSubscriptions: 2 });
    live.node("a");
    live.node("b");
    expect(live.node("c").current.error?.code).toBe("too_many_subscriptions");
    expect(live.node("b").current.error).toBeUndefined();
    const { live: wide } = start();
    const views = Array.from({ length: 40 }, (_, n) => wide.node(`${n}/${"x".repeat(1000)}`));
    const refused = views.filter((view) => view.current.error !== undefined);
    expect(refused.length).toBe(40 - 32);
    views[0]?.close();
    expect(wide.node("y".repeat(900)).current.error).toBeUndefined();
  });

  // fault 23
  it("spreads a thousand clients over at least 5 s after a restart, under 30 % of them in any second", async () => {
    const server = new FakeServer();
    const clients = Array.from({ length: 1000 }, (_, n) => new Live(server.client(), { random: seeded(n + 1) }));
    lives.push(...clients);
    for (const live of clients) live.node("a");
    await pass(50);
    expect(server.streams.length).toBe(1000);
    server.asked.length = 0;
    const before = server.streams.length;
    server.refusal = () => Promise.reject(new TypeError("connection refused"));
    for (const stream of [...server.streams]) stream.end();
    await pass(2_000); // the server is away for this long
    const up = Date.now();
    server.refusal = undefined;
    await pass(35_000); // less than the silence after which they would come back again
    const arrivals = server.asked.filter((at) => at >= up).sort((a, b) => a - b);
    expect(server.streams.length - before).toBe(1000);
    expect((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0)).toBeGreaterThanOrEqual(5_000);
    let worst = 0;
    for (let first = 0, last = 0; last < arrivals.length; last++) {
      while ((arrivals[last] as number) - (arrivals[first] as number) >= 1000) first++;
      worst = Math.max(worst, last - first + 1);
    }
    expect(worst).toBeLessThan(300);
  }, 60_000);

  it("waits longer the longer an outage lasts, up to a bound", () => {
    const widest = (attempt: number): number => reconnectDelay(attempt, () => 0.999999);
    expect(widest(0)).toBeLessThanOrEqual(firstWindowMs);
    expect(widest(1)).toBeGreaterThan(firstWindowMs);
    expect(widest(1000)).toBeLessThanOrEqual(maxWindowMs);
    expect(reconnectDelay(3, () => 0)).toBe(0);
  });
});
