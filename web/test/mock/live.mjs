// The streams of the mock: /api/live and /api/watch.
import { difference } from "./store.mjs";

const heartbeatMs = 15_000;
const quietMs = 50;

/** @param {import("./store.mjs").MockStore} store @param {URL} url @param {import("node:http").ServerResponse} response */
export function live(store, url, response) {
  const subs = ["node", "children", "query"].flatMap((kind) => url.searchParams.getAll(kind).map((argument) => ({ kind, argument })));
  stream(response, (send) => {
    /** @type {Map<number, NodeJS.Timeout>} */
    const timers = new Map();
    /** @type {Map<number, string>} */
    const last = new Map();
    /** @param {number} sub @param {string} event @param {any} data */
    const whole = (sub, event, data) => {
      const text = JSON.stringify(data);
      if (last.get(sub) === text) return;
      last.set(sub, text);
      send(event, { sub, ...data });
    };
    /** @param {number} sub */
    const refresh = (sub) => {
      const { kind, argument } = /** @type {{ kind: string, argument: string }} */ (subs[sub]);
      if (kind === "children") whole(sub, "children", { path: argument, children: store.children(argument) });
      else whole(sub, "result", { query: argument, ...store.query(argument) });
    };
    subs.forEach(({ kind, argument }, sub) => {
      if (kind !== "node") return refresh(sub);
      const node = store.nodes.get(argument);
      if (node !== undefined) send("full", { sub, version: node.version, node });
      else send("sub-end", { sub, title: "Not found", status: 404, code: "not_found", retry: "never", detail: `There is no node "${argument}", or it is not yours to read.` });
    });
    /** @param {any} change */
    const onChange = (change) => {
      subs.forEach(({ kind, argument }, sub) => {
        if (kind === "node") {
          if (argument === change.path) send(...frame(change, sub));
        } else if (!timers.has(sub)) {
          timers.set(sub, setTimeout(() => {
            timers.delete(sub);
            refresh(sub);
          }, quietMs));
        }
      });
    };
    store.on("change", onChange);
    return () => {
      store.off("change", onChange);
      for (const timer of timers.values()) clearTimeout(timer);
    };
  });
}

/** @param {import("./store.mjs").MockStore} store @param {string} path @param {string | undefined} lastId @param {import("node:http").ServerResponse} response */
export function watch(store, path, lastId, response) {
  const node = store.get(path);
  stream(response, (send) => {
    const [version, stamp] = (lastId ?? "").split(".");
    const from = store.history.get(path)?.find((old) => String(old.version) === version);
    if (from === undefined) send("full", { version: node.version, node }, idOf(node));
    else if (stamp !== undefined && stamp !== stampOf(from)) send("full", { version: node.version, reset: true, node }, idOf(node));
    else if (from.version < node.version) send(...frame({ path, node, old: from }, undefined));
    /** @param {any} change */
    const onChange = (change) => {
      if (change.path === path) send(...frame(change, undefined));
    };
    store.on("change", onChange);
    return () => store.off("change", onChange);
  });
}

const statesMs = 200;

/**
 * A stream of whole states: one at once, then after each change, at most five a second.
 * @param {import("node:http").ServerResponse} response @param {string} event @param {() => any} state @param {(tell: () => void) => () => void} follow
 */
export function states(response, event, state, follow) {
  stream(response, (send) => {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    send(event, state());
    const stop = follow(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        send(event, state());
      }, statesMs);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  });
}

/** @param {any} change @param {number | undefined} sub @returns {[string, any, string]} */
function frame({ node, old, deleted }, sub) {
  const tag = sub === undefined ? {} : { sub };
  /** @param {string} id what one connection with several counts has none of */
  const alone = (id) => (sub === undefined ? id : "");
  if (deleted !== undefined) return ["deleted", { ...tag, version: deleted }, alone(`${deleted}.0`)];
  const patch = old === undefined ? undefined : difference(old, node);
  if (patch === undefined) return ["full", { ...tag, version: node.version, node }, alone(idOf(node))];
  return ["patch", { ...tag, version: node.version, basedOn: old.version, patch }, alone(idOf(node))];
}

/** The stamp of a row: its modification in microseconds. @param {any} node @returns {string} */
function stampOf(node) {
  return (Date.parse(node.lastModified) * 1000).toString(36);
}

/** The id of an event names the very row. @param {any} node @returns {string} */
function idOf(node) {
  return `${node.version}.${stampOf(node)}`;
}

/** @param {import("node:http").ServerResponse} response @param {(send: (event: string, data: any, id?: string) => void) => () => void} start */
function stream(response, start) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  response.write(": hello\n\n");
  const stop = start((event, data, id = "") => response.write(`event: ${event}\n${id === "" ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`));
  const heartbeat = setInterval(() => response.write(": still here\n\n"), heartbeatMs);
  response.on("close", () => {
    clearInterval(heartbeat);
    stop();
  });
}
