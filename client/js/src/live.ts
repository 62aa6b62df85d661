import { atOnceDelay, earnedMs, reconnectDelay } from "./backoff.ts";
import type { Client } from "./client.ts";
import { fromFailure, HubmeshError } from "./errors.ts";
import { parseLive } from "./frames.ts";
import { openEventStream, silenceLimitMs } from "./stream.ts";
import { ChildrenTopic, NodeTopic, QueryTopic, type Topic, type TopicKind, type View } from "./topic.ts";
import type { Child, MeshNode, QueryResult } from "./types.ts";

export interface LiveStatus {
  /**
   * `idle`: nothing is subscribed. `connecting`: the first connection. `connected`. `reconnecting`: it
   * was lost, and `retryAt` tells when it is tried again. `paused`: by the caller. `refused`: the
   * server will not have it (`error` says why), nothing is tried until reconnect(). `closed`: for good.
   */
  readonly state: "idle" | "connecting" | "connected" | "reconnecting" | "paused" | "refused" | "closed";
  readonly error: HubmeshError | undefined;
  /** Milliseconds since 1970 of the next attempt; undefined while one is under way or none is due. */
  readonly retryAt: number | undefined;
}

export interface LiveOptions {
  /** Milliseconds to wait for more changes of the set before the connection is opened anew. */
  debounceMs?: number;
  silenceMs?: number;
  random?: () => number;
  /** Bound on subscriptions; one more fails with `too_many_subscriptions`. */
  maxSubscriptions?: number;
}

interface Connection {
  readonly abort: AbortController;
  readonly topics: readonly Topic<unknown>[];
  /** Milliseconds since 1970 at which the server accepted it; 0 before. */
  openedAt: number;
}

/** Characters of the subscriptions in the URL: servers and proxies bound the head of a request. */
const maxQueryChars = 32 * 1024;
const order: readonly TopicKind[] = ["node", "children", "query"];
/** Milliseconds after which a subscription that ended for now is asked for once more. "After a second" is the least that a server can say. */
const againMs = 500;
/** A connection that lived this long was a good one: the next reconnect starts from the narrow window. */
const healthyMs = 20_000;

/**
 * All live views of a page on one connection. The connection is opened anew when the set of
 * subscriptions changes; the old one is read until the new one is accepted. Not for use from several
 * threads; every callback runs on the caller's event loop.
 */
export class Live {
  private readonly topics = new Map<string, Topic<unknown>>();
  private readonly statusListeners = new Set<() => void>();
  private readonly debounceMs: number;
  private readonly silenceMs: number;
  private readonly random: () => number;
  private readonly maxSubscriptions: number;
  private current: Connection | undefined;
  private next: Connection | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private healthy: ReturnType<typeof setTimeout> | undefined;
  private readonly reads = new AbortController();
  private queryChars = 0;
  private attempt = 0;
  /** A connection that breaks is tried again at once: not twice in a row, unless it had lived meanwhile. */
  private atOnce = true;
  private asked = 0;
  private shown: LiveStatus = { state: "idle", error: undefined, retryAt: undefined };

  constructor(private readonly client: Client, options: LiveOptions = {}) {
    this.debounceMs = options.debounceMs ?? 30;
    this.silenceMs = options.silenceMs ?? silenceLimitMs;
    this.random = options.random ?? Math.random;
    this.maxSubscriptions = options.maxSubscriptions ?? 512;
  }

  node(path: string): View<MeshNode> {
    return this.view("node", path, () => new NodeTopic(path));
  }

  children(path: string): View<Child[]> {
    return this.view("children", path, () => new ChildrenTopic(path));
  }

  query(q: string): View<QueryResult> {
    return this.view("query", q, () => new QueryTopic(q));
  }

  get status(): LiveStatus {
    return this.shown;
  }

  onStatus(listener: () => void): () => void {
    this.statusListeners.add(listener);
    return () => this.statusListeners.delete(listener);
  }

  /** Connects at once: after the network came back, a sign-in, or by the user's wish. */
  reconnect(): void {
    if (this.shown.state === "closed" || this.shown.state === "paused") return;
    this.attempt = 0;
    this.open();
  }

  /** Closes the connection and keeps every view's last value, for example while the page is hidden. */
  pause(): void {
    if (this.shown.state === "closed") return;
    this.drop();
    this.setStatus("paused");
  }

  resume(): void {
    if (this.shown.state !== "paused") return;
    this.setStatus(this.topics.size === 0 ? "idle" : "connecting");
    this.reconnect();
  }

  /** Ends everything. Views keep their last value. */
  close(): void {
    this.drop();
    this.reads.abort();
    this.topics.clear();
    this.queryChars = 0;
    this.setStatus("closed");
  }

  private view<T>(kind: TopicKind, argument: string, make: () => Topic<T>): View<T> {
    const key = `${kind}:${argument}`;
    let topic = this.topics.get(key) as Topic<T> | undefined;
    if (topic === undefined) {
      topic = make();
      this.queryChars += charsOf(topic);
      if (this.topics.size >= this.maxSubscriptions || this.queryChars > maxQueryChars) {
        this.queryChars -= charsOf(topic);
        topic.fail(new HubmeshError({
          code: "too_many_subscriptions",
          title: "Too much is open at once",
          detail: `At most ${this.maxSubscriptions} live views, and ${maxQueryChars} characters of their names, fit on one connection; close some.`,
        }));
      } else {
        this.topics.set(key, topic as Topic<unknown>);
        this.changed();
        if (this.shown.state === "reconnecting" || this.shown.state === "refused") this.readOnce(topic as Topic<unknown>);
      }
    }
    topic.views++;
    return this.handle(key, topic);
  }

  private handle<T>(key: string, topic: Topic<T>): View<T> {
    let open = true;
    const mine = new Set<() => void>();
    return {
      get current() {
        return topic.snapshot;
      },
      subscribe: (listener) => {
        const own = (): void => listener();
        mine.add(own);
        topic.listeners.add(own);
        return () => {
          mine.delete(own);
          topic.listeners.delete(own);
        };
      },
      ready: () => ready(topic),
      close: () => {
        if (!open) return;
        open = false;
        for (const own of mine) topic.listeners.delete(own);
        topic.views--;
        if (topic.views > 0 || this.topics.get(key) !== topic) return;
        this.topics.delete(key);
        this.queryChars -= charsOf(topic);
        this.changed();
      },
    };
  }

  /** The set changed: open anew soon. A reconnect that is already waiting takes the new set along. */
  private changed(): void {
    const { state } = this.shown;
    if (state === "closed" || state === "paused" || (state === "reconnecting" && this.timer !== undefined)) return;
    this.schedule(this.debounceMs);
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), delayMs);
  }

  private open(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.next?.abort.abort();
    this.next = undefined;
    const topics = [...this.topics.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
    if (topics.length === 0) {
      this.drop();
      this.setStatus("idle");
      return;
    }
    const connection: Connection = { abort: new AbortController(), topics, openedAt: 0 };
    this.next = connection;
    if (this.shown.state === "reconnecting") this.setStatus("reconnecting", this.shown.error);
    else if (this.current === undefined) this.setStatus("connecting");
    void this.pump(connection);
  }

  private async pump(connection: Connection): Promise<void> {
    const parameters = new URLSearchParams();
    for (const topic of connection.topics) parameters.append(topic.kind, topic.argument);
    try {
      const stream = openEventStream(this.client, `${this.client.baseUrl}/api/live?${parameters}`, {
        signal: connection.abort.signal,
        silenceMs: this.silenceMs,
        onOpen: () => this.opened(connection),
      });
      for await (const events of stream) {
        for (const event of events) {
          const message = parseLive(event);
          const topic = message === undefined ? undefined : connection.topics[message.sub];
          if (message === undefined || topic === undefined) continue;
          topic.followed = true;
          if (topic.take(message.body)) this.fetchNode(topic as NodeTopic, connection);
          if (message.body.kind === "end") this.ended(topic, message.body.error);
          else topic.endings = 0;
        }
      }
      this.lost(connection, undefined);
    } catch (cause) {
      if (connection.abort.signal.aborted) return;
      const error = fromFailure(cause);
      this.lost(connection, error instanceof HubmeshError ? error : new HubmeshError({ code: "network", retry: "after", cause }));
    }
  }

  private opened(connection: Connection): void {
    if (this.next !== connection) return;
    connection.openedAt = Date.now();
    this.current?.abort.abort();
    this.current = connection;
    this.next = undefined;
    clearTimeout(this.healthy);
    this.healthy = setTimeout(() => {
      this.attempt = 0;
      this.atOnce = true;
    }, healthyMs);
    for (const topic of connection.topics) topic.connected();
    this.asked = 0;
    this.setStatus("connected");
  }

  private lost(connection: Connection, error: HubmeshError | undefined): void {
    connection.abort.abort();
    if (this.next === connection) this.next = undefined;
    else if (this.current === connection) this.current = undefined;
    else return;
    clearTimeout(this.healthy);
    if (this.next !== undefined) return; // a newer one is on its way already
    for (const topic of this.topics.values()) {
      if (!topic.followed && topic.snapshot.status === "loading") this.readOnce(topic);
    }
    if (error?.retry === "never") {
      this.setStatus("refused", error);
      return;
    }
    const delay = this.delayAfter(connection, error);
    this.schedule(delay);
    this.setStatus("reconnecting", error, Date.now() + delay);
  }

  /**
   * Milliseconds until the next try: at once after a good connection breaks, or its server goes down, because
   * another may be there already. What that server asked to wait holds if the try at once does not help.
   */
  private delayAfter({ openedAt }: Connection, error: HubmeshError | undefined): number {
    const asked = (error?.retryAfter ?? 0) * 1000;
    if (openedAt > 0 && Date.now() - openedAt >= earnedMs) this.atOnce = true;
    if (openedAt > 0 && this.atOnce && (asked === 0 || error?.code === "shutting_down")) {
      this.atOnce = false;
      this.asked = asked;
      return atOnceDelay(this.random);
    }
    const delay = reconnectDelay(this.attempt++, this.random, Math.max(asked, this.asked));
    this.asked = 0;
    return delay;
  }

  /** Without a connection a subscription that had no frame yet shows at least what is there now. */
  private readOnce(topic: Topic<unknown>): void {
    topic.readOnce(this.client, this.reads.signal).catch((cause: unknown) => {
      if (topic.followed || this.reads.signal.aborted) return;
      topic.fail(cause instanceof HubmeshError ? cause : new HubmeshError({ code: "network", retry: "after", cause }));
    });
  }

  /** One subscription ended: for good, or to be asked for again. */
  private ended(topic: Topic<unknown>, error: HubmeshError): void {
    if (error.retry === "never" || this.timer !== undefined) return;
    this.schedule(askedAgain(topic.endings++, this.random, error));
  }

  private fetchNode(topic: NodeTopic, connection: Connection): void {
    const { signal } = connection.abort;
    this.client.get(topic.argument, { signal }).then(
      (node) => topic.step({ kind: "fetched", node }),
      (cause: unknown) => {
        const error = cause instanceof HubmeshError ? cause : new HubmeshError({ code: "network", retry: "after", cause });
        return topic.step({ kind: "fetch-failed", error });
      },
    ).then((again) => {
      if (signal.aborted) return;
      if (again) this.fetchNode(topic, connection);
      else if (topic.snapshot.status === "failed" && topic.snapshot.error !== undefined) this.ended(topic, topic.snapshot.error);
    });
  }

  private drop(): void {
    clearTimeout(this.timer);
    clearTimeout(this.healthy);
    this.timer = undefined;
    this.next?.abort.abort();
    this.current?.abort.abort();
    this.next = undefined;
    this.current = undefined;
  }

  private setStatus(state: LiveStatus["state"], error?: HubmeshError, retryAt?: number): void {
    if (this.shown.state === state && this.shown.error === error && this.shown.retryAt === retryAt) return;
    this.shown = { state, error, retryAt };
    for (const listener of [...this.statusListeners]) listener();
  }
}

/** Milliseconds until a subscription that ended for now is asked for again: soon, where its hub starts or moves. */
function askedAgain(endings: number, random: () => number, { code, retryAfter = 0 }: HubmeshError): number {
  if (endings === 0 && (retryAfter <= 1 || code === "shutting_down")) return Math.floor((0.5 + random() / 2) * againMs);
  return reconnectDelay(Math.max(0, endings - 1), random, retryAfter * 1000);
}

function charsOf(topic: { kind: TopicKind; argument: string }): number {
  return topic.kind.length + 2 + encodeURIComponent(topic.argument).length;
}

function ready(topic: Topic<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (): boolean => {
      const { status, error } = topic.snapshot;
      if (status === "failed") reject(error);
      else if (!topic.followed) return false;
      else resolve();
      return true;
    };
    if (settle()) return;
    const listener = (): void => {
      if (settle()) topic.listeners.delete(listener);
    };
    topic.listeners.add(listener);
  });
}
