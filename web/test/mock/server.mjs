// The mock's HTTP side: routes of docs/api.md over the store in memory, and the built page.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { marked } from "marked";
import { MockDemo } from "./demo.mjs";
import { live, states, watch } from "./live.mjs";
import { MockStore, Problem } from "./store.mjs";

const dist = fileURLToPath(new URL("../../dist", import.meta.url));
const types = /** @type {Record<string, string>} */ ({ ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".md": "text/markdown", ".txt": "text/plain", ".json": "application/json" });
const policy = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

export const token = "hm_mock";
const cookie = "hubmesh=mock";

/**
 * Starts a mock on a port of 127.0.0.1; 0 is a free one. With `demo` it plays three silos.
 * @param {{ port?: number, publicRead?: boolean, demo?: boolean }} [options]
 */
export async function startMock({ port = 0, publicRead = false, demo: withDemo = false } = {}) {
  const store = new MockStore();
  const demo = withDemo ? new MockDemo() : undefined;
  if (demo !== undefined) {
    store.create("Demo", { nodeType: "Space", name: "Demo" }, "system");
    store.create("Demo/Page", { nodeType: "Markdown", name: "A page to type in", content: { $type: "Markdown", markdown: "Three silos serve this page, one at a time.\n\n" } }, "system");
  }
  /** Set by tests: the status that every API call gets, or 0; whether the one who is signed in is no Admin. */
  const control = { failWith: 0, notAdmin: false };
  const server = createServer((request, response) => {
    handle(request, response).catch((cause) => {
      const problem = cause instanceof Problem ? cause : new Problem(500, "internal", String(cause?.stack ?? cause));
      response.writeHead(problem.status, { "content-type": "application/problem+json", ...(problem.retry === "after" ? { "retry-after": demo === undefined ? "2" : "1" } : {}) });
      response.end(JSON.stringify(problem.body));
    });
  });

  /** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async function handle(request, response) {
    const url = new URL(request.url ?? "/", "http://mock");
    const method = request.method ?? "GET";
    const [, root = "", route = "", ...rest] = url.pathname.split("/");
    const path = rest.map(decodeURIComponent).join("/");
    const signedIn = request.headers.authorization === `Bearer ${token}` || (request.headers.cookie ?? "").includes(cookie);
    const by = signedIn ? "mia" : "Anonymous";
    /** @param {any} value @param {number} [status] */
    const json = (value, status = 200) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    if (root === "login") {
      response.writeHead(303, { "set-cookie": `${cookie}; HttpOnly; SameSite=Lax; Path=/`, location: "/" });
      return response.end();
    }
    if (root === "logout") {
      response.writeHead(204, { "set-cookie": "hubmesh=; Max-Age=0; Path=/" });
      return response.end();
    }
    if (root === "static") return icon(response);
    if (root !== "api") return page(url.pathname, response);
    if (route === "whoami") return json({ subject: by, name: signedIn ? "Mia Marsh" : "", anonymous: !signedIn, admin: signedIn && !control.notAdmin });
    if (control.failWith > 0) throw new Problem(control.failWith, control.failWith === 503 ? "starting" : "forbidden", "The mock was told to fail.", control.failWith === 503 ? "after" : "never");
    if (!signedIn && !publicRead) throw new Problem(404, "not_found", "There is nothing here, or it is not yours to read.");
    if (demo !== undefined && ["GET live", "GET watch"].includes(`${method} ${route}`)) demo.carry(response);
    else if (demo !== undefined && path !== "state") response.setHeader("hubmesh-silo", demo.route()?.name ?? "");
    const body = async () => JSON.parse((await read(request)).toString() || "null");
    const ifMatch = request.headers["if-match"];
    switch (`${method} ${route}`) {
      case "GET nodes": return json(store.get(path));
      case "POST nodes": return json(store.create(path, await body(), by), 201);
      case "PUT nodes": return json(store.put(path, await body(), by, ifMatch));
      case "PATCH nodes": {
        const patch = await body();
        const fate = demo?.fate() ?? "done";
        if (fate === "refused") throw new Problem(503, "starting", "The node is being started on another silo.", "after");
        const node = fate === "lost-before" ? undefined : store.patch(path, patch, by, ifMatch);
        return fate === "done" ? json(node) : request.socket.destroy();
      }
      case "DELETE nodes": return json(store.delete(path, url.searchParams.has("recursive")));
      case "GET children": return json({ children: store.children(path), next: "" });
      case "GET versions": {
        const past = store.history.get(path) ?? [];
        const at = url.searchParams.get("at");
        if (at === null) return json({ versions: [...past].reverse().map((n, i, all) => ({ version: n.version, kind: i === all.length - 1 ? "created" : "updated", at: n.lastModified, by: n.lastModifiedBy, name: n.name })) });
        const old = past.find((n) => String(n.version) === at);
        if (old === undefined) throw new Problem(404, "not_found", `Version ${at} is not kept.`);
        return json(old);
      }
      case "GET query": return json(store.query(url.searchParams.get("q") ?? ""));
      case "GET render": {
        const node = store.get(path);
        return json({ path, version: node.version, html: render(markdownOf(node)) });
      }
      case "POST render": return json({ html: render((await body()).markdown) });
      case "GET live": return live(store, url, response);
      case "GET watch": return watch(store, path, /** @type {string | undefined} */ (request.headers["last-event-id"]), response);
      case "GET files": return json(listing(store, path, url.searchParams.get("dir") ?? ""));
      case "PUT files": {
        const bytes = await read(request);
        conditional(store, path, request);
        store.files.set(path, { bytes, type: request.headers["content-type"] ?? "", modified: new Date().toISOString() });
        return json({ url: `/api/content/${path}`, size: bytes.length, etag: tagOf(bytes) }, 201);
      }
      case "DELETE files":
        conditional(store, path, request);
        store.files.delete(path);
        response.writeHead(204);
        return response.end();
      case "GET content": return content(store, path, url, response);
      case "POST import": return json({ activity: importer(store, await body(), by) }, 202);
      case "GET why": return json(demo === undefined ? { address: path, answeredBy: "mock", observedAt: new Date().toISOString(), kind: "node", clause: "", bounds: [] } : await demo.why());
      case "GET cluster": {
        if (control.notAdmin) throw new Problem(403, "forbidden", "You may not administer the root scope.");
        const status = () => demo?.cluster() ?? alone();
        return path === "watch" ? states(response, "status", status, (tell) => {
          const timer = setInterval(tell, 1000);
          return () => clearInterval(timer);
        }) : json(status());
      }
      case "GET demo":
      case "POST demo": {
        if (demo === undefined) throw new Problem(404, "not_found", "This server is no demo.");
        const [what, name = ""] = path.split("/");
        if (what === "state") return states(response, "state", () => demo.state(), (tell) => {
          demo.on("change", tell);
          return () => demo.off("change", tell);
        });
        const { action, a, b, cut } = await body();
        if (what === "links") demo.link(a, b, cut);
        else demo.act(name, action);
        response.writeHead(204);
        return response.end();
      }
      default: throw new Problem(405, "method_not_allowed", `${method} ${url.pathname}`);
    }
  }

  await new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(undefined)));
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  const origin = `http://127.0.0.1:${address.port}`;
  const stop = () => {
    demo?.stop();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve(undefined)));
  };
  return { store, control, demo, origin, login: `${origin}/login?code=mock`, token, server, stop };
}

/** A process that is no silo. @returns {import("@hubmesh/client").ClusterStatus} */
function alone() {
  return {
    cluster: false, askedBy: "mock", observedAt: new Date().toISOString(), answered: 0, missing: [], silos: [],
    totals: { slots: { total: 0, owned: 0, settled: 0, entries: 0 }, claims: { processes: 0, processesLanded: 0, claiming: 0, granted: 0 }, refusals: {}, repairs: {}, feedLagMs: 0 },
    process: { id: "mock", hubs: 12 + Math.floor(Math.random() * 3), asksPending: 0 },
  };
}

/** @param {Uint8Array} bytes */
function tagOf(bytes) {
  return `"${createHash("sha256").update(bytes).digest("base64")}"`;
}

/** Refuses a change of a file whose condition does not hold. @param {MockStore} store @param {string} path @param {import("node:http").IncomingMessage} request */
function conditional(store, path, { headers }) {
  const file = store.files.get(path);
  const match = headers["if-match"];
  const holds = match === undefined || (file !== undefined && (match === "*" || match === tagOf(file.bytes)));
  if (!holds || (headers["if-none-match"] === "*" && file !== undefined)) throw new Problem(412, "stale", "The file is not the one that the condition names.", "now");
}

/** @param {any} node */
function markdownOf(node) {
  const { content } = node;
  return typeof content === "string" ? content : content?.markdown ?? content?.content;
}

/** @param {any} markdown */
function render(markdown) {
  return typeof markdown === "string" ? marked.parse(markdown, { async: false }) : "";
}

/** @param {MockStore} store @param {string} node @param {string} dir */
function listing(store, node, dir) {
  const prefix = `${node}/content/${dir === "" ? "" : `${dir}/`}`;
  const entries = new Map();
  for (const [path, file] of store.files) {
    if (!path.startsWith(prefix)) continue;
    const [name = "", ...below] = path.slice(prefix.length).split("/");
    entries.set(name, below.length > 0 ? { name, dir: true } : { name, dir: false, size: file.bytes.length, modified: file.modified, url: `/api/content/${path.split("/").map(encodeURIComponent).join("/")}` });
  }
  return { collection: "content", dir, entries: [...entries.values()] };
}

/** @param {MockStore} store @param {string} path @param {URL} url @param {import("node:http").ServerResponse} response */
function content(store, path, url, response) {
  let file = store.files.get(path);
  const parts = path.split("/");
  // The default collection of the node or of one above it.
  for (let n = parts.length - 1; file === undefined && n > 0; n--) file = store.files.get([...parts.slice(0, n), "content", ...parts.slice(n)].join("/"));
  if (file === undefined) throw new Problem(404, "not_found", "No such file.");
  response.writeHead(200, { "content-type": types[extname(path)] ?? file.type, "cache-control": "private, no-store", ...(url.searchParams.has("download") ? { "content-disposition": "attachment" } : {}) });
  response.end(file.bytes);
}

/** Counts the files of a directory slowly, so that there is something to watch and to stop. @param {MockStore} store @param {any} body @param {string} by */
function importer(store, { source, into }, by) {
  const path = `${into || "Guide"}/_Activity/import-${Date.now()}`;
  store.write(path, { nodeType: "Activity", name: `Import of ${source}`, mainNode: into || "Guide", content: { $type: "Activity", status: "Running", title: `Import of ${source}`, message: "reading", done: 0, total: 0 } }, by, undefined);
  void (async () => {
    const total = (await readdir(source, { recursive: true }).catch(() => [])).length || 1000;
    for (let done = 0; done < total; done += 150) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      const status = /** @type {any} */ (store.nodes.get(path)?.content)?.requestedStatus;
      if (status !== undefined) return store.patch(path, { content: { status } }, "system", undefined);
      store.patch(path, { content: { done, total } }, "system", undefined);
    }
    store.patch(path, { content: { status: "Succeeded" } }, "system", undefined);
  })();
  return path;
}

/** @param {import("node:http").ServerResponse} response */
function icon(response) {
  response.writeHead(200, { "content-type": "image/svg+xml", "cache-control": "public, max-age=60" });
  response.end("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='black' stroke-width='2'><circle cx='12' cy='8' r='4'/><path d='M4 20c2-6 14-6 16 0'/></svg>");
}

/** @param {string} pathname @param {import("node:http").ServerResponse} response */
async function page(pathname, response) {
  const file = normalize(join(dist, decodeURIComponent(pathname)));
  const headers = { "content-security-policy": policy, "x-content-type-options": "nosniff" };
  const bytes = file.startsWith(dist) && extname(file) !== "" ? await readFile(file).catch(() => undefined) : undefined;
  if (bytes === undefined && pathname.startsWith("/_app/")) throw new Problem(404, "not_found", pathname);
  response.writeHead(200, { ...headers, "content-type": (bytes === undefined ? types[".html"] : types[extname(file)]) ?? "application/octet-stream" });
  response.end(bytes ?? (await readFile(join(dist, "index.html"))));
}

/** @param {import("node:http").IncomingMessage} request */
async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}
