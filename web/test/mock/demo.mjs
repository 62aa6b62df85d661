// Three silos that are none: enough of `hubmesh demo` and of /api/cluster to work on their pages. Requests
// are counted at a silo, streams break with theirs, a lost owner is replaced after a while, and the first
// writes meanwhile lose their answers in turn: after they were stored, before, and by a refusal.
import { EventEmitter } from "node:events";
import { Problem } from "./store.mjs";

/** @typedef {import("@hubmesh/client").DemoState} DemoState */
/** @typedef {import("@hubmesh/client").DemoSiloState} SiloState */
/** @typedef {import("@hubmesh/client").SiloStatus} SiloStatus */

const path = "Demo/Page";
const slots = 4096;
const replaceMs = 500;
const frozenMs = 1_400;
/** What each action needs, and what it leads to. @type {Record<string, SiloState[]>} */
const allowed = { kill: ["up", "frozen", "starting"], freeze: ["up"], thaw: ["frozen"], restart: ["up", "killed", "left", "failed", "frozen"], leave: ["up"], cut: ["up", "frozen"], heal: ["up", "frozen"] };

export class MockDemo extends EventEmitter {
  silos = ["s1", "s2", "s3"].map((name, n) => this.#silo(name, n));
  links = [["s1", "s2"], ["s1", "s3"], ["s2", "s3"]].map(([a = "", b = ""]) => ({ a, b, cut: false }));
  /** @type {DemoState["events"]} */
  events = [];
  owner = "s2";
  view = 3;
  /** Writes since the owner was lost; undefined while there is one. @type {number | undefined} */
  lostWrites = undefined;
  /** @type {Map<import("node:http").ServerResponse, string>} */
  streams = new Map();
  #timers = new Set();
  #next = 0;

  constructor() {
    super();
    this.setMaxListeners(0);
    for (const silo of this.silos) this.note(silo.name, "log", "info", `joined the cluster in view 1.${this.view}`);
    this.note("s2", "log", "info", `serves ${path}`);
    this.#settle();
    const beat = setInterval(() => this.#beat(), 400);
    this.#timers.add(beat);
  }

  /** @param {string} name @param {number} n */
  #silo(name, n) {
    return {
      name, state: /** @type {SiloState} */ ("up"), since: new Date(Date.now() - 93_000).toISOString(), url: `http://127.0.0.1:${41_234 + n}`, ready: true, waiting: /** @type {string[]} */ ([]),
      front: { requests: 120 - n * 17, streams: 0, failed: 0 }, epoch: 0x1a40 + n * 0x11, statusAt: new Date().toISOString(), owned: 0, granted: 1 + (n % 2), hubs: 4,
      refusals: /** @type {Record<string, number>} */ ({ starting: 2, released: n }), repairs: /** @type {Record<string, number>} */ ({ "views-fetched": 1 + n }),
    };
  }

  /** @param {string} silo @param {"action" | "log"} kind @param {"info" | "warn" | "error"} level @param {string} text */
  note(silo, kind, level, text) {
    this.events.push({ seq: (this.events.at(-1)?.seq ?? 0) + 1, at: new Date().toISOString(), silo, kind, level, text });
    this.events = this.events.slice(-60);
    this.emit("change");
  }

  /** The silo that answers a request, or undefined. */
  route() {
    const up = this.silos.filter((s) => s.state === "up" && s.ready);
    const silo = up[this.#next++ % Math.max(1, up.length)];
    if (silo !== undefined) silo.front.requests++;
    return silo;
  }

  /** What becomes of a write now: "done", "refused", or the answer is lost after or before it is stored. */
  fate() {
    if (this.lostWrites === undefined) return "done";
    return ["lost-after", "lost-before", "refused"][this.lostWrites++ % 3] ?? "refused";
  }

  /** A stream breaks with the silo that carries it. @param {import("node:http").ServerResponse} response */
  carry(response) {
    const silo = this.route();
    if (silo === undefined) return;
    this.streams.set(response, silo.name);
    silo.front.streams++;
    response.on("close", () => {
      if (this.streams.delete(response)) silo.front.streams--;
      this.emit("change");
    });
  }

  /** @param {string} name @param {string} action */
  act(name, action) {
    const silo = this.silos.find((s) => s.name === name);
    if (silo === undefined) throw new Problem(404, "not_found", `There is no silo "${name}".`);
    const states = allowed[action];
    if (states === undefined) throw new Problem(400, "bad_request", `There is no action "${action}".`);
    if (!states.includes(silo.state)) throw new Problem(409, "conflict", `${name} is ${silo.state}: ${action} needs it ${states.join(" or ")}.`, "now");
    this.note(name, "action", action === "kill" ? "warn" : "info", action);
    switch (action) {
      case "kill": return this.#gone(silo, "killed", 300);
      case "leave": return this.#gone(silo, "left", 50);
      case "freeze":
        this.#to(silo, "frozen");
        this.#break(name);
        if (this.owner === name) this.#loseOwner(frozenMs);
        return;
      case "thaw":
        this.#to(silo, "up");
        this.note(name, "log", "warn", "was evicted while it stood still: joins again with a new epoch");
        return this.#joined(silo);
      case "restart":
        this.#break(name);
        if (this.owner === name && this.lostWrites === undefined) this.#loseOwner(replaceMs);
        this.#to(silo, "starting");
        Object.assign(silo, { url: "", ready: false, waiting: ["joining the cluster"], front: { ...silo.front } });
        return this.#after(700, () => {
          this.#to(silo, "up");
          Object.assign(silo, { url: `http://127.0.0.1:${41_300 + this.#next}`, ready: true, waiting: [] });
          this.#joined(silo);
        });
      default:
        for (const link of this.links) if (link.a === name || link.b === name) link.cut = action === "cut";
        return this.#cutChanged();
    }
  }

  /** @param {string} a @param {string} b @param {boolean} cut */
  link(a, b, cut) {
    const link = this.links.find((l) => (l.a === a && l.b === b) || (l.a === b && l.b === a));
    if (link === undefined) throw new Problem(404, "not_found", `There is no link between "${a}" and "${b}".`);
    link.cut = cut;
    this.note("", "action", cut ? "warn" : "info", `${cut ? "cut" : "heal"} ${a} – ${b}`);
    this.#cutChanged();
  }

  #cutChanged() {
    for (const silo of this.silos) silo.repairs["views-pushed"] = (silo.repairs["views-pushed"] ?? 0) + 1;
    this.emit("change");
  }

  /** @param {any} silo @param {SiloState} state @param {number} after */
  #gone(silo, state, after) {
    this.#to(silo, state);
    Object.assign(silo, { url: "", ready: false });
    this.#break(silo.name);
    if (this.owner === silo.name) this.#loseOwner(after + replaceMs);
    this.#after(after, () => this.#settle());
  }

  /** @param {any} silo */
  #joined(silo) {
    silo.epoch += 0x101;
    this.#settle();
    this.note(silo.name, "log", "info", `joined the cluster in view 1.${this.view}`);
  }

  /** @param {any} silo @param {SiloState} state */
  #to(silo, state) {
    silo.state = state;
    silo.since = new Date().toISOString();
    this.emit("change");
  }

  /** @param {string} name */
  #break(name) {
    for (const [response, carrier] of [...this.streams]) {
      if (carrier === name) response.destroy();
    }
  }

  /** @param {number} ms */
  #loseOwner(ms) {
    this.lostWrites = 0;
    this.#after(ms, () => {
      const next = this.silos.find((s) => s.state === "up" && s.name !== this.owner);
      if (next === undefined) return this.#loseOwner(300);
      this.owner = next.name;
      this.lostWrites = undefined;
      next.repairs["claims-made-again"] = (next.repairs["claims-made-again"] ?? 0) + 1;
      next.refusals["no-entry"] = (next.refusals["no-entry"] ?? 0) + 3;
      this.#settle();
      this.note(next.name, "log", "info", `serves ${path}`);
    });
  }

  /** The slots go to those who are there. */
  #settle() {
    const up = this.silos.filter((s) => s.state === "up");
    this.view++;
    up.forEach((silo, i) => {
      silo.owned = Math.floor(slots / up.length) + (i < slots % up.length ? 1 : 0);
      silo.repairs["slots-settled-by-members"] = (silo.repairs["slots-settled-by-members"] ?? 0) + 12;
    });
    this.emit("change");
  }

  #beat() {
    for (const silo of this.silos) {
      if (silo.state !== "up") continue;
      silo.statusAt = new Date().toISOString();
      if (this.lostWrites !== undefined) silo.refusals["starting"] = (silo.refusals["starting"] ?? 0) + 1;
    }
    this.emit("change");
  }

  /** @param {number} ms @param {() => void} run */
  #after(ms, run) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
    }, ms);
    this.#timers.add(timer);
  }

  stop() {
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** @param {any} silo @returns {SiloStatus} */
  #status(silo) {
    const others = this.silos.filter((s) => s.name !== silo.name);
    /** @param {string} name */
    const cut = (name) => this.links.some((l) => l.cut && [l.a, l.b].includes(name) && [l.a, l.b].includes(silo.name));
    const epoch = (/** @type {any} */ s) => s.epoch.toString(16).padStart(16, "0");
    return {
      silo: silo.name, epoch: epoch(silo), addr: `127.0.0.1:${9_400 + Number(silo.name[1])}`, phase: silo.state === "left" ? "left" : "up", ...(others.every((s) => cut(s.name)) ? { isolated: true } : {}), view: `1.${this.view}`,
      members: this.silos.filter((s) => s.state === "up" || s.state === "frozen").map((s) => ({ silo: s.name, epoch: epoch(s), addr: `127.0.0.1:${9_400 + Number(s.name[1])}`, ...(s.state === "frozen" || cut(s.name) ? { suspect: true } : {}), ...(s.name === silo.name ? {} : { lastPongMs: s.state === "frozen" ? 1_180 : 42 }) })),
      slots: { total: slots, owned: silo.owned, settled: silo.owned, entries: silo.granted + 3 },
      claims: { processes: 3, processesLanded: 3, claiming: this.lostWrites === undefined ? 0 : 1, granted: silo.granted + (this.owner === silo.name ? 1 : 0), grantedLanded: silo.granted },
      directory: { installed: 12, lookups: 240 }, resolve: { views: this.view, fromCache: 31 }, router: { sent: silo.front.requests * 2, arrived: silo.front.requests, lost: 0, landed: 3, notLanding: 0, madeAgain: silo.repairs["claims-made-again"] ?? 0 },
      refusals: { "no-entry": 0, ...silo.refusals }, repairs: { "claims-made-again": 0, ...silo.repairs },
      process: {
        id: `${silo.name}@host`, hubs: silo.hubs, asksPending: 0, feed: { live: true, lagMs: 1, pending: 0, foreign: 90, resets: 0, reconnects: 0, gaps: 0 },
        peers: others.map((s) => ({ silo: s.name, epoch: epoch(s), connected: s.state === "up" && !cut(s.name), accepted: s.state === "up" && !cut(s.name), pending: 0, calls: silo.front.requests + 40, lost: s.state === "up" ? 0 : 1, reconnects: 0 })),
      },
    };
  }

  /** @returns {DemoState} */
  state() {
    return {
      at: new Date().toISOString(),
      node: { path, servedBy: this.lostWrites === undefined ? [this.owner] : [] },
      silos: this.silos.map((silo) => {
        const { name, state, since, url, ready, waiting, front, statusAt } = silo;
        return { name, state, since, url, ready, waiting, front: { ...front }, status: this.#status(silo), statusAt };
      }),
      links: this.links.map((link) => ({ ...link })),
      events: this.events,
    };
  }

  /** @returns {import("@hubmesh/client").ClusterStatus} */
  cluster() {
    const silos = this.silos.filter((s) => s.state === "up" || s.state === "frozen").map((silo) => {
      const status = this.#status(silo);
      return silo.state === "frozen" ? { silo: silo.name, epoch: status.epoch, tookMs: 1000, missing: "no answer within 1 s (cluster-ask)" } : { silo: silo.name, epoch: status.epoch, tookMs: 2, status };
    });
    const told = silos.flatMap((s) => s.status ?? []);
    /** @param {"refusals" | "repairs"} of */
    const sums = (of) => told.reduce((all, s) => {
      for (const [name, n] of Object.entries(s[of])) all[name] = (all[name] ?? 0) + n;
      return all;
    }, /** @type {Record<string, number>} */ ({}));
    /** @param {(s: SiloStatus) => number} of */
    const sum = (of) => told.reduce((n, s) => n + of(s), 0);
    return {
      cluster: true, askedBy: told[0]?.silo ?? "", observedAt: new Date().toISOString(), answered: told.length, missing: silos.filter((s) => s.missing !== undefined).map((s) => `${s.silo}: ${s.missing}`),
      totals: {
        slots: { total: slots, owned: sum((s) => s.slots.owned), settled: sum((s) => s.slots.settled), entries: sum((s) => s.slots.entries) },
        claims: { processes: sum((s) => s.claims.processes), processesLanded: sum((s) => s.claims.processesLanded), claiming: sum((s) => s.claims.claiming), granted: sum((s) => s.claims.granted) },
        refusals: sums("refusals"), repairs: sums("repairs"), feedLagMs: 1,
      },
      silos,
    };
  }

  /** @returns {Promise<import("@hubmesh/client").Why>} */
  async why() {
    const asker = this.route()?.name ?? "s1";
    const owner = this.silos.find((s) => s.name === this.owner);
    const gone = owner === undefined || owner.state !== "up";
    if (gone) await new Promise((resolve) => setTimeout(resolve, 600));
    const epoch = (/** @type {any} */ s) => s.epoch.toString(16).padStart(16, "0");
    const recent = this.lostWrites === undefined ? [] : [{ agoMs: 240, what: "refused", reason: "starting", answeredBy: "s3" }];
    const self = this.silos.find((s) => s.name === asker);
    const slotOwner = this.silos.find((s) => s.state === "up" && s.name !== asker)?.name ?? asker;
    return {
      address: path, answeredBy: `${asker}@host`, observedAt: new Date().toISOString(), kind: "node",
      clause: gone ? "no hosted hub was observed in this process at snapshot time, activation=none-recorded" : "Started node hub, runlevel=Serving, queue=0, deferred=0",
      bounds: [{ name: "store-read", ms: 2_000, for: "a read of the store" }, { name: "read", ms: 5_000, for: "a read of a node" }],
      cluster: {
        askedBy: asker, view: `1.${this.view}`, slotOwner, ...(owner === undefined ? {} : { owner: { silo: owner.name, epoch: epoch(owner), registration: 7 } }),
        answered: [...new Set([asker, slotOwner, ...(gone ? [] : [this.owner])])], missing: gone && owner?.state === "frozen" ? [`${this.owner}: no answer within 1 s (cluster-ask)`] : [],
        observations: [
          { silo: asker, epoch: epoch(self), view: `1.${this.view}`, role: "asker", tookMs: 0, recent: [{ agoMs: 5_200, what: "claim made again" }, ...recent] },
          { silo: slotOwner, epoch: "0", view: `1.${this.view}`, role: "slot-owner", tookMs: 2, slot: { number: 417, settled: true, ...(owner === undefined ? {} : { entry: { silo: owner.name, epoch: epoch(owner), registration: 7 } }) } },
          { silo: this.owner, epoch: epoch(owner), role: "holder", tookMs: gone ? 1000 : 1, ...(gone ? { missing: "no answer within 1 s (cluster-ask)", suspect: true, lastPongMs: 1_210 } : { serving: true, lastPongMs: 42, claim: { registration: 7, node: true, phase: "granted", round: 1, landed: "1", tries: 0 } }) },
        ],
      },
    };
  }
}
