import { applyMergePatch, HubmeshError, type Client, type Json, type JsonObject, type MeshNode, type Snapshot, type View } from "@hubmesh/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Autosaver } from "../src/edit/autosave.ts";
import { bodyOf, changeOf } from "../src/edit/fields.ts";

/** A server of one node, whose answers and frames the test lets through. */
class OneNode {
  node: MeshNode;
  calls: string[] = [];
  failure: HubmeshError | undefined;
  signedOut = false;
  private listeners = new Set<() => void>();
  private snapshot: Snapshot<MeshNode>;

  constructor(content: Json, nodeType = "Markdown") {
    this.node = { path: "a", id: "a", nodeType, content, version: 1 };
    this.snapshot = { status: "live", value: this.node, version: 1, error: undefined };
  }

  write(fields: JsonObject, options: { ifMatch?: number } = {}): MeshNode {
    if (this.failure !== undefined) throw this.failure;
    if (this.signedOut) throw new HubmeshError({ code: "stale", status: 412, retry: "now" });
    if (options.ifMatch !== undefined && options.ifMatch !== this.node.version) throw new HubmeshError({ code: "stale", status: 412, retry: "now" });
    const merged = applyMergePatch(this.node as unknown as Json, fields) as unknown as MeshNode;
    this.node = { ...merged, version: this.node.version + 1 };
    return this.node;
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
        return this.write(patch, options);
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
    server.failure = new HubmeshError({ code: "unavailable", status: 503, retry: "after", retryAfter: 3 });
    saver.edit("body", "b");
    await pass(700);
    expect(saver.state).toMatchObject({ kind: "failed", error: { code: "unavailable" } });
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
