import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Client } from "../src/client.ts";
import { HubmeshError } from "../src/errors.ts";
import { Live } from "../src/live.ts";
import type { View } from "../src/topic.ts";
import { watchNode } from "../src/watch.ts";

// The HTTP contract against a real server, where one is given. The page's mock passes it too.
const url = process.env["HUBMESH_URL"] ?? "";
const token = process.env["HUBMESH_TOKEN"] ?? "";

/** Waits until a view holds what is wanted; each change of the view is a look. */
function until<T>(view: View<T>, wanted: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!wanted()) return;
      stop();
      resolve();
    };
    const stop = view.subscribe(look);
    look();
  });
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(() => "no error", (cause: unknown) => cause);
  return error instanceof HubmeshError ? error.code : String(error);
}

describe.skipIf(url === "")("the server", () => {
  const client = new Client({ baseUrl: url, token });
  const live = new Live(client);
  const space = `Contract${Date.now().toString(36)}`;

  beforeAll(async () => {
    await client.create(space, { nodeType: "Space", name: "Contract" });
  });
  afterAll(async () => {
    live.close();
    await client.delete(space, { recursive: true });
  });

  it("creates, reads, patches, replaces and deletes a node, one version higher each time", async () => {
    const path = `${space}/Gai pâturage s.r.l.`;
    const created = await client.create(path, { name: "One", content: { a: 1, b: { c: [1, 2] } } });
    expect([created.path, created.version]).toEqual([path, 1]);
    expect((await client.get(path)).content).toEqual({ a: 1, b: { c: [1, 2] } });
    const patched = await client.patch(path, { name: "Two", content: { a: null, b: { d: true } } });
    expect([patched.version, patched.content]).toEqual([2, { b: { c: [1, 2], d: true } }]);
    expect((await client.patch(path, { name: "Two" })).version).toBe(2);
    expect((await client.put(path, { content: { x: null } }, { ifMatch: 2 })).content).toEqual({ x: null });
    expect((await client.versions(path)).map((v) => v.version)).toEqual([3, 2, 1]);
    expect((await client.versionAt(path, 1)).name).toBe("One");
    expect((await client.delete(path)).deleted).toBe(1);
    expect(await codeOf(client.get(path))).toBe("not_found");
  });

  it("refuses with the codes of the table", async () => {
    await client.create(`${space}/codes`, { nodeType: "Markdown" });
    await client.create(`${space}/codes/below`, { nodeType: "Markdown" });
    expect(await codeOf(client.create(`${space}/codes`, { nodeType: "Markdown" }))).toBe("exists");
    expect(await codeOf(client.patch(`${space}/codes`, { name: "x" }, { ifMatch: 99 }))).toBe("stale");
    expect(await codeOf(client.delete(`${space}/codes`))).toBe("has_children");
    expect(await codeOf(client.create(`${space}Missing/x`, { nodeType: "Markdown" }))).toBe("partition_missing");
    expect((await client.delete(`${space}/codes`, { recursive: true })).deleted).toBe(2);
  });

  it("renders a document and a preview", async () => {
    await client.create(`${space}/doc`, { nodeType: "Markdown", content: { $type: "Markdown", markdown: "# Title\n\n**bold**\n" } });
    const rendered = await client.render(`${space}/doc`);
    expect([rendered.version, rendered.html]).toEqual([1, expect.stringContaining("<strong>bold</strong>")]);
    expect(await client.renderMarkdown(`${space}/doc`, "*soft*")).toContain("<em>soft</em>");
  });

  it("stores, lists, serves and deletes files", async () => {
    const bytes = new Uint8Array([0, 1, 2, 255]);
    const { size, etag } = await client.upload(space, "content", "dir/a b.bin", bytes, { ifAbsent: true });
    expect(size).toBe(4);
    await expect(client.upload(space, "content", "dir/a b.bin", "x", { ifAbsent: true })).rejects.toMatchObject({ code: "stale", status: 412 });
    await expect(client.deleteFile(space, "content", "dir/a b.bin", { ifMatch: "\"other\"" })).rejects.toMatchObject({ code: "stale" });
    expect(await client.upload(space, "content", "dir/a b.bin", bytes, { ifMatch: etag ?? "" })).toMatchObject({ etag });
    expect((await client.files(space)).entries).toEqual([expect.objectContaining({ name: "dir", dir: true })]);
    const [entry] = (await client.files(space, { dir: "dir" })).entries;
    expect([entry?.name, entry?.size]).toEqual(["a b.bin", 4]);
    const response = await fetch(client.contentUrl(space, "content", "dir/a b.bin"), { headers: { Authorization: `Bearer ${token}` } });
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
    await client.deleteFile(space, "content", "dir/a b.bin");
    expect((await client.files(space, { dir: "dir" })).entries).toEqual([]);
  });

  // fault 35
  it("sends every write that is made after a subscription is ready", async () => {
    await client.create(`${space}/live`, { content: { n: 0, counts: "yes" } });
    const [node, children, found] = [live.node(`${space}/live`), live.children(space), live.query(`path:${space} scope:descendants counts:yes`)];
    await Promise.all([node.ready(), children.ready(), found.ready()]);
    for (let n = 1; n <= 20; n++) await client.patch(`${space}/live`, { content: { n } });
    await until(node, () => node.current.version === 21);
    expect(node.current.value?.content).toEqual({ n: 20, counts: "yes" });
    await client.create(`${space}/later`, { content: { counts: "yes" } });
    await until(children, () => children.current.value?.some((child) => child.id === "later") === true);
    await until(found, () => found.current.value?.nodes.some((n) => n.id === "later") === true);
    await client.delete(`${space}/live`);
    await until(node, () => node.current.status === "deleted");
  });

  it("resumes a watch, and tells the deletion and the new life of a path", async () => {
    const path = `${space}/watched`;
    await client.create(path, { content: { n: 0 } });
    const abort = new AbortController();
    const states = watchNode(client, path, { signal: abort.signal });
    expect((await states.next()).value?.version).toBe(1);
    await client.patch(path, { content: { n: 1 } });
    expect((await states.next()).value?.node?.content).toEqual({ n: 1 });
    await client.delete(path);
    expect((await states.next()).value?.status).toBe("deleted");
    await client.create(path, { content: { n: 2 } });
    const again = (await states.next()).value;
    expect([again?.status, again?.node?.content]).toEqual(["live", { n: 2 }]);
    expect(again?.version).toBeGreaterThan(2);
    abort.abort();
    await states.return(undefined as never);
  });

  it("knows who asks", async () => {
    expect((await client.whoami()).anonymous).toBe(false);
    expect((await new Client({ baseUrl: url }).whoami()).anonymous).toBe(true);
  });

  it("tells of its part in a cluster, or that it has none, and why a node is as it is", async () => {
    const path = `${space}/why`;
    await client.create(path, { name: "Why", content: { a: 1 } });
    const [status, why] = [await client.clusterStatus(), await client.why(path)];
    expect(status.cluster ? status.silos.length > 0 : status.process !== undefined).toBe(true);
    expect([why.address, why.kind, why.bounds.length > 0]).toEqual([path, "node", true]);
    expect([why.clause !== "", status.missing, why.cluster === undefined]).toEqual([true, [], !status.cluster]);
  });

  it("refuses what only the demo has, with not_found", async () => {
    const abort = new AbortController();
    const first = (): Promise<unknown> => client.demoState({ signal: abort.signal }).next();
    const codes = [await codeOf(first()), await codeOf(client.demoAct("s1", "kill")), await codeOf(client.demoLink("s1", "s2", true))];
    abort.abort();
    expect(codes).toEqual(["not_found", "not_found", "not_found"]);
  });
});
