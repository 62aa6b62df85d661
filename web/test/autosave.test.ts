import { applyMergePatch, HubmeshError, type Client, type Json, type JsonObject, type MeshNode, type Snapshot, type View } from "@hubmesh/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { int, pick, seeded } from "../../client/js/test/random.ts";
import { Autosaver } from "../src/edit/autosave.ts";
import { bodyOf, changeOf } from "../src/edit/fields.ts";

/** A server of one node, whose answers and frames the test lets through. */
class OneNode {
  node: MeshNode;
  calls: string[] = [];
  /** What happens to the next writes, one each: stored and the answer lost, lost on the way, or refused. */
  fates: ("answer lost" | "lost" | "refused" | "held" | "retried by a proxy")[] = [];
  /** Writes that a server that stands still has not done yet. */
  held: (() => unknown)[] = [];
  history: MeshNode[] = [];
  failure: HubmeshError | undefined;
  signedOut = false;
  /** It keeps no history. */
  forgets = false;
  private listeners = new Set<() => void>();
  private snapshot: Snapshot<MeshNode>;

  constructor(content: Json, nodeType = "Markdown") {
    this.node = { path: "a", id: "a", nodeType, content, version: 1 };
    this.history = [this.node];
    this.snapshot = { status: "live", value: this.node, version: 1, error: undefined };
  }

  write(fields: JsonObject, options: { ifMatch?: number } = {}): MeshNode {
    if (this.failure !== undefined) throw this.failure;
    if (this.signedOut) throw new HubmeshError({ code: "stale", status: 412, retry: "now" });
    if (options.ifMatch !== undefined && options.ifMatch !== this.node.version) throw new HubmeshError({ code: "stale", status: 412, retry: "now" });
    const merged = applyMergePatch(this.node as unknown as Json, fields) as unknown as MeshNode;
    this.node = { ...merged, version: this.node.version + 1 };
    this.history.push(this.node);
    return this.node;
  }

  /** A write that comes over a network and a front door. */
  sent(fields: JsonObject, options: { ifMatch?: number }): MeshNode {
    const fate = this.fates.shift();
    const lost = new HubmeshError({ code: "network", retry: "after" });
    switch (fate) {
      case undefined: return this.write(fields, options);
      case "refused": throw new HubmeshError({ code: "starting", status: 503, retry: "after", retryAfter: 5 });
      case "lost": throw lost;
      case "held":
        this.held.push(() => this.write(fields, options));
        throw new HubmeshError({ code: "shutting_down", status: 503, retry: "after", retryAfter: 1, problem: { outcome: "unknown" } });
      case "retried by a proxy":
        this.write(fields, options);
        return this.write(fields, options);
      case "answer lost":
        this.write(fields, options);
        throw lost;
    }
  }

  get text(): string {
    return (this.node.content as JsonObject)["markdown"] as string;
  }

  /** The frame of what is stored now. */
  frame(status: "live" | "deleted" = "live"): void {
    this.snapshot = { status, value: status === "live" ? this.node : undefined, version: this.node.version, error: undefined };
    for (const listener of [...this.listeners]) listener();
  }

  get saver(): Autosaver {
    const view: View<MeshNode> = {
      current: undefined as never, ready: async () => undefined, close: () => this.calls.push("close view"),
      subscribe: (listener) => {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
      },
    };
    Object.defineProperty(view, "current", { get: () => this.snapshot });
    const client = {
      get: async () => {
        if (this.signedOut) throw new HubmeshError({ code: "not_found", status: 404 });
        return this.node;
      },
      whoami: async () => ({ subject: "", name: "", anonymous: this.signedOut, admin: false }),
      patch: async (_path: string, patch: JsonObject, options: { ifMatch?: number }) => {
        this.calls.push(`patch ${JSON.stringify(patch)} if ${options.ifMatch}`);
        return this.sent(patch, options);
      },
      versionAt: async (_path: string, version: number) => {
        const node = this.history.find((old) => old.version === version);
        if (node === undefined || this.forgets) throw new HubmeshError({ code: "not_found", status: 404 });
        return node;
      },
      put: async (_path: string, fields: JsonObject, options: { ifMatch?: number } = {}) => {
        this.calls.push(`put if ${options.ifMatch}`);
        const { version } = this.write({}, options);
        return (this.node = { path: "a", id: "a", ...fields, version });
      },
    };
    return new Autosaver(client as unknown as Client, view, "a", this.node);
  }
}

const markdown = (text: string): Json => ({ $type: "Markdown", markdown: text });
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("saving by itself", () => {
  it("waits for a pause in typing and sends what changed, on the version it grew from", async () => {
    const server = new OneNode(markdown("a"));
    const saver = server.saver;
    for (const text of ["ab", "abc", "abcd"]) {
      saver.edit("body", text);
      await pass(300);
    }
    expect([server.calls, saver.state.kind]).toEqual([[], "unsaved"]);
    await pass(700);
    expect([server.calls, saver.state.kind]).toEqual([["patch {\"content\":{\"markdown\":\"abcd\"}} if 1"], "saved"]);
  });

  it("does not wait for ever when there is no pause", async () => {
    const server = new OneNode(markdown(""));
    const saver = server.saver;
    for (let n = 0; n < 60 && server.calls.length === 0; n++) {
      saver.edit("body", "x".repeat(n + 1));
      await pass(100);
    }
    expect(server.calls.length).toBe(1);
  });

  it("says that the session has ended where it was ended in another tab, and keeps the text", async () => {
    const server = new OneNode(markdown("one"));
    const saver = server.saver;
    server.signedOut = true;
    saver.edit("body", "two");
    await pass(2000);
    const { state } = saver;
    expect([state.kind, state.kind === "failed" && state.error.title, saver.pending]).toEqual(["failed", "You are signed out", true]);
  });

  it("merges and goes again when somebody else wrote in between, without a word", async () => {
    const server = new OneNode(markdown("one\ntwo\n"));
    const saver = server.saver;
    server.write({ content: { markdown: "one\nTWO\n" } });
    saver.edit("body", "ONE\ntwo\n");
    await pass(1_000);
    expect([saver.text("body"), saver.state.kind, server.node.content]).toEqual(["ONE\nTWO\n", "saved", markdown("ONE\nTWO\n")]);
    expect(server.calls.length).toBe(2);
  });

  it("takes in what others write while it is typed", async () => {
    const server = new OneNode(markdown("one\ntwo\n"));
    const saver = server.saver;
    saver.edit("body", "ONE\ntwo\n");
    server.write({ name: "Renamed", content: { markdown: "one\nTWO\n" } });
    server.frame();
    expect([saver.text("body"), saver.text("name")]).toEqual(["ONE\nTWO\n", "Renamed"]);
  });

  it("tries again by itself after a failure that is temporary, and says so", async () => {
    const server = new OneNode(markdown("a"));
    const saver = server.saver;
    server.failure = new HubmeshError({ code: "overloaded", status: 503, retry: "after", retryAfter: 3 });
    saver.edit("body", "b");
    await pass(700);
    expect(saver.state).toMatchObject({ kind: "failed", error: { code: "overloaded" } });
    server.failure = undefined;
    await pass(2_900);
    expect(saver.state.kind).toBe("failed");
    await pass(200);
    expect([saver.state.kind, server.node.content]).toEqual(["saved", markdown("b")]);
  });

  it("keeps the text and does not hammer when it is refused for good", async () => {
    const server = new OneNode(markdown("a"));
    const saver = server.saver;
    server.failure = new HubmeshError({ code: "forbidden", status: 403, retry: "never" });
    saver.edit("body", "b");
    await pass(600_000);
    expect([server.calls.length, saver.state.kind, saver.text("body"), saver.pending]).toEqual([1, "failed", "b", true]);
  });

  it("keeps the text when the node is deleted, and creates it again on request", async () => {
    const server = new OneNode(markdown("a"));
    const saver = server.saver;
    saver.edit("body", "b");
    server.frame("deleted");
    await pass(10_000);
    expect([saver.state.kind, server.calls]).toEqual(["deleted", []]);
    await saver.createAgain();
    expect([saver.state.kind, server.node.content]).toEqual(["saved", markdown("b")]);
  });

  it("lives on after the editor is left until all is saved, then lets go", async () => {
    const server = new OneNode(markdown("a"));
    const saver = server.saver;
    saver.edit("body", "b");
    saver.close();
    expect(saver.released).toBe(false);
    await pass(0);
    expect([saver.released, server.calls.at(-1)]).toEqual([true, "close view"]);
  });

  it("replaces the whole content where a merge patch can not say the change", async () => {
    const server = new OneNode({ a: 1 }, "Thing");
    const saver = server.saver;
    saver.edit("body", "{\"a\": null}");
    await pass(1_000);
    expect([server.calls, saver.state.kind]).toEqual([["put if 1"], "saved"]);
  });

  it("sends nothing while the text is not JSON, and nothing when only its formatting changed", async () => {
    const server = new OneNode({ a: 1 }, "Thing");
    const saver = server.saver;
    saver.edit("body", "{\"a\":");
    await pass(1_000);
    expect(saver.state.kind).toBe("invalid");
    saver.edit("body", "{\"a\":1}");
    await pass(1_000);
    expect([saver.state.kind, server.calls]).toEqual(["saved", []]);
  });
});

// Typing goes on while silos die: what was typed is stored once, in its order.
describe("a save whose answer is lost", () => {
  const start = (text = "hello ") => {
    const server = new OneNode(markdown(text));
    return { server, saver: server.saver };
  };

  it("is not repeated when the server had stored it", async () => {
    const { server, saver } = start();
    server.fates = ["answer lost"];
    saver.edit("body", "hello wor");
    await pass(700);
    expect([saver.state.kind, server.text]).toEqual(["failed", "hello wor"]);
    saver.edit("body", "hello world");
    await pass(1_500);
    expect([saver.text("body"), server.text, saver.state.kind, server.node.version]).toEqual(["hello world", "hello world", "saved", 3]);
    expect([saver.saves, saver.retries, saver.draft.acknowledged]).toEqual([2, 1, 2]);
  });

  it("is known as its own when its frame comes before anything is read", async () => {
    const { server, saver } = start();
    server.fates = ["answer lost"];
    saver.edit("body", "hello wor");
    await pass(700);
    server.frame();
    expect([saver.state.kind, saver.pending, saver.draft.acknowledged, saver.saves]).toEqual(["saved", false, 1, 1]);
    await pass(60_000);
    expect(server.calls.length).toBe(1);
  });

  it("is sent again when the server had not stored it, within 250 ms", async () => {
    const { server, saver } = start();
    server.fates = ["lost"];
    saver.edit("body", "hello you");
    await pass(700);
    expect(server.calls.length).toBe(1);
    await pass(250);
    expect([server.text, saver.state.kind, server.calls.length, server.node.version]).toEqual(["hello you", "saved", 2, 2]);
  });

  it("is sent again within 250 ms when it was refused before it was done, though five seconds were asked for", async () => {
    const { server, saver } = start();
    server.fates = ["refused"];
    saver.edit("body", "hello you");
    await pass(700);
    await pass(250);
    expect([server.text, saver.state.kind, server.calls.length]).toEqual(["hello you", "saved", 2]);
  });

  it("is known as its own where a proxy sent it twice and the second was stale", async () => {
    const { server, saver } = start();
    server.fates = ["retried by a proxy"];
    saver.edit("body", "hello a");
    await pass(700);
    expect([server.text, saver.text("body"), saver.state.kind, server.node.version]).toEqual(["hello a", "hello a", "saved", 2]);
  });

  it("is told apart from what somebody else wrote after it", async () => {
    const { server, saver } = start("one\ntwo\n");
    server.fates = ["answer lost"];
    saver.edit("body", "one\ntwo mine\n");
    await pass(700);
    server.write({ content: { markdown: "ONE\ntwo mine\n" } });
    saver.edit("body", "one\ntwo mine and more\n");
    server.frame();
    await pass(2_000);
    expect([server.text, saver.text("body"), saver.state.kind]).toEqual(["ONE\ntwo mine and more\n", "ONE\ntwo mine and more\n", "saved"]);
  });

  it("is told apart so also where no history can be read", async () => {
    const { server, saver } = start("one\ntwo\n");
    server.forgets = true;
    server.fates = ["answer lost"];
    saver.edit("body", "one\ntwo mine\n");
    await pass(700);
    server.write({ content: { markdown: "ONE\ntwo mine\n" } });
    saver.edit("body", "one\ntwo mine and more\n");
    server.frame();
    await pass(2_000);
    expect([server.text, saver.text("body")]).toEqual(["ONE\ntwo mine and more\n", "ONE\ntwo mine and more\n"]);
  });

  it("may be stored late, by a server that stood still, and is known then too", async () => {
    const { server, saver } = start();
    server.fates = ["held", "lost"];
    saver.edit("body", "hello w");
    await pass(700);
    saver.edit("body", "hello wo");
    await pass(240);
    saver.edit("body", "hello wor");
    server.held.shift()?.();
    server.frame();
    await pass(5_000);
    expect([server.text, saver.text("body"), saver.state.kind]).toEqual(["hello wor", "hello wor", "saved"]);
  });

  it("is stored late and undone when it was taken back meanwhile", async () => {
    const { server, saver } = start();
    server.fates = ["held"];
    saver.edit("body", "hello w");
    await pass(700);
    saver.edit("body", "hello ");
    await pass(5_000);
    expect([server.text, saver.state.kind]).toEqual(["hello ", "saved"]);
    server.held.shift()?.();
    server.frame();
    await pass(2_000);
    expect([server.text, saver.text("body"), saver.state.kind]).toEqual(["hello ", "hello ", "saved"]);
  });

  it("is tried more and more seldom, but at least every 2 s while typing goes on", async () => {
    const { server, saver } = start();
    server.failure = new HubmeshError({ code: "unavailable", status: 503, retry: "after", retryAfter: 1 });
    saver.edit("body", "hello a");
    await pass(60_000);
    const idle = server.calls.length;
    expect(idle).toBeLessThan(13);
    for (let n = 0; n < 100; n++) {
      saver.edit("body", `hello a${"x".repeat(n)}`);
      await pass(100);
    }
    expect(server.calls.length - idle).toBeGreaterThanOrEqual(4);
    expect(server.calls.length - idle).toBeLessThan(12);
  });

  it("loses and repeats no key, whatever happens to saves while somebody types and somebody else writes", async () => {
    for (let seed = 1; seed <= 120; seed++) {
      const random = seeded(seed);
      const server = new OneNode(markdown("theirs:\n\nmine: "));
      const saver = server.saver;
      const [mine, theirs]: [string[], string[]] = [[], []];
      for (let n = 0; n < 120; n++) {
        const dice = random();
        if (dice < 0.6) {
          const key = `k${mine.length} `;
          mine.push(key);
          saver.edit("body", saver.text("body") + key);
        } else if (dice < 0.66) {
          const line = `t${theirs.length} `;
          theirs.push(line);
          server.write({ content: { markdown: server.text.replace("\n\nmine", `${line}\n\nmine`) } });
        } else if (dice < 0.72) server.frame();
        else if (dice < 0.82) server.fates.push(pick(random, ["answer lost", "lost", "refused", "held", "retried by a proxy"]));
        else if (dice < 0.88) {
          try {
            server.held.shift()?.();
          } catch {
            // The fence refuses what comes too late.
          }
        }
        await pass(int(random, 400));
      }
      server.fates = [];
      server.frame();
      await pass(120_000);
      const wanted = `theirs:${theirs.join("")}\n\nmine: ${mine.join("")}`;
      expect([server.text, saver.text("body"), saver.state.kind], `seed ${seed}`).toEqual([wanted, wanted, "saved"]);
      expect(saver.draft.acknowledged, `seed ${seed}`).toBe(mine.length);
    }
  });
});

describe("a node's text", () => {
  const of = (content: Json | undefined, nodeType = "X") => bodyOf({ path: "a", id: "a", version: 1, nodeType, ...(content === undefined ? {} : { content }) });

  it("is its Markdown where it has some, and its JSON otherwise", () => {
    const member = (...bodies: ReturnType<typeof of>[]): string[] => bodies.map((body) => (body.kind === "markdown" ? body.member : "json"));
    expect(member(of(markdown("x")), of({ markdown: "" }), of({ markdown: "", text: "x" }, "Markdown"), of(undefined, "Markdown"))).toEqual(["markdown", "markdown", "text", "markdown"]);
    expect(member(of({ $type: "Article", content: "x", title: "t" }), of({ $type: "Article", body: "x" }), of({ $type: "Article" }))).toEqual(["content", "body", "markdown"]);
    expect(member(of({ $type: "Comment", content: "x" }), of({ a: 1 }), of([1]), of("x"), of(undefined))).toEqual(["json", "json", "json", "json", "json"]);
  });

  it("that is emptied removes a name, and keeps an empty document", () => {
    const node: MeshNode = { path: "a", id: "a", version: 1, name: "n", content: markdown("x") };
    expect(changeOf(node, bodyOf(node), { name: "", body: "" }).patch).toEqual({ name: null, content: { markdown: "" } });
  });
});
