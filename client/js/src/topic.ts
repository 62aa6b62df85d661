import type { Client } from "./client.ts";
import type { HubmeshError } from "./errors.ts";
import type { LiveMessage } from "./frames.ts";
import { initialMirror, stepMirror, type MirrorEvent, type MirrorState } from "./mirror.ts";
import type { Child, MeshNode, QueryResult } from "./types.ts";

/** What a subscriber sees. `loading` until the first frame; afterwards the last value stays while the link is down. */
export interface Snapshot<T> {
  readonly status: "loading" | "live" | "deleted" | "failed";
  readonly value: T | undefined;
  /** Node version; 0 for children and query results. */
  readonly version: number;
  readonly error: HubmeshError | undefined;
}

/** A subscription's end that the caller holds. */
export interface View<T> {
  readonly current: Snapshot<T>;
  /** Calls the listener after each change, until the returned function is called. */
  subscribe(listener: () => void): () => void;
  /**
   * Resolves when the server has sent the first frame of this subscription: a write made afterwards
   * arrives. Rejects when the subscription fails. A value may be there before, read while the
   * connection was down.
   */
  ready(): Promise<void>;
  /** Ends this subscription. Idempotent. */
  close(): void;
}

export type TopicKind = "node" | "children" | "query";
type Body = LiveMessage["body"];

/** One subscription of the connection, shared by all views of the same thing. */
export abstract class Topic<T> {
  readonly listeners = new Set<() => void>();
  views = 0;
  /** The server has sent a frame of it. */
  followed = false;
  /** How often in a row the server ended it for now; for the delay of the next try. */
  endings = 0;
  abstract readonly kind: TopicKind;
  constructor(readonly argument: string) {}
  abstract get snapshot(): Snapshot<T>;
  /** Takes a message; tells whether the node must be fetched. */
  abstract take(body: Body): boolean;
  /** A connection that carries this subscription was accepted. */
  abstract connected(): void;
  abstract fail(error: HubmeshError): void;
  /** Reads the value once, beside the connection. What the connection brings meanwhile wins. */
  abstract readOnce(client: Client, signal: AbortSignal): Promise<void>;

  protected notify(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

export class NodeTopic extends Topic<MeshNode> {
  readonly kind = "node";
  private state: MirrorState = initialMirror;
  private shown: Snapshot<MeshNode> = { status: "loading", value: undefined, version: 0, error: undefined };

  get snapshot(): Snapshot<MeshNode> {
    return this.shown;
  }

  take(body: Body): boolean {
    if (body.kind === "children" || body.kind === "result") return false;
    return this.step(body);
  }

  connected(): void {
    this.step({ kind: "connected" });
  }

  fail(error: HubmeshError): void {
    this.step({ kind: "end", error });
  }

  async readOnce(client: Client, signal: AbortSignal): Promise<void> {
    const node = await client.get(this.argument, { signal });
    if (!this.followed) this.step({ kind: "fetched", node });
  }

  step(event: MirrorEvent): boolean {
    const { state, fetch } = stepMirror(this.state, event);
    this.state = state;
    const { status, version, node, error } = state;
    const old = this.shown;
    if (old.status !== status || old.version !== version || old.value !== node || old.error !== error) {
      this.shown = { status, version, value: node, error };
      this.notify();
    }
    return fetch;
  }
}

/** A subscription whose frames are whole replacements. */
abstract class ListTopic<T> extends Topic<T> {
  private shown: Snapshot<T> = { status: "loading", value: undefined, version: 0, error: undefined };

  get snapshot(): Snapshot<T> {
    return this.shown;
  }

  take(body: Body): boolean {
    if (body.kind === "end") this.fail(body.error);
    else {
      const value = this.read(body);
      if (value !== undefined) this.show(value);
    }
    return false;
  }

  async readOnce(client: Client, signal: AbortSignal): Promise<void> {
    const value = await this.load(client, signal);
    if (!this.followed) this.show(value);
  }

  private show(value: T): void {
    this.shown = { status: "live", value, version: 0, error: undefined };
    this.notify();
  }

  override connected(): void {}

  fail(error: HubmeshError): void {
    this.shown = { ...this.shown, status: "failed", error };
    this.notify();
  }

  protected abstract read(body: Body): T | undefined;
  protected abstract load(client: Client, signal: AbortSignal): Promise<T>;
}

export class ChildrenTopic extends ListTopic<Child[]> {
  readonly kind = "children";
  protected read(body: Body): Child[] | undefined {
    return body.kind === "children" ? body.children : undefined;
  }
  protected async load(client: Client, signal: AbortSignal): Promise<Child[]> {
    return (await client.children(this.argument, { signal })).children;
  }
}

export class QueryTopic extends ListTopic<QueryResult> {
  readonly kind = "query";
  protected read(body: Body): QueryResult | undefined {
    return body.kind === "result" ? body.result : undefined;
  }
  protected load(client: Client, signal: AbortSignal): Promise<QueryResult> {
    return client.query(this.argument, { signal });
  }
}
