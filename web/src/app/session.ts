import { Client, Live, type HubmeshError, type MeshNode, type WhoAmI } from "@hubmesh/client";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { Autosaver, type Timing } from "../edit/autosave.ts";
import { Router } from "./router.ts";

export interface Notice {
  readonly id: number;
  readonly kind: "info" | "error";
  readonly text: string;
  readonly href: string | undefined;
}

/** Milliseconds that a page is hidden before its live connection is closed: browsers allow few connections to a server. */
const hiddenMs = 10_000;
const noticeMs = 7_000;

/** What the parts of the page share: the client, the one live connection, edits that are not saved yet, notices. */
export class Session {
  readonly client: Client;
  readonly live: Live;
  readonly router: Router;
  whoami: WhoAmI | undefined;
  notices: readonly Notice[] = [];
  private readonly savers = new Map<string, Autosaver>();
  private readonly listeners = new Set<() => void>();
  private nextNotice = 1;
  private hidden: ReturnType<typeof setTimeout> | undefined;

  constructor(window: Window, client = new Client()) {
    this.client = client;
    this.live = new Live(client);
    this.router = new Router(window);
    window.document.addEventListener("visibilitychange", () => this.visibility(window.document.hidden));
    window.addEventListener("online", () => this.live.reconnect());
    window.addEventListener("beforeunload", (event) => {
      let pending = false;
      for (const saver of this.savers.values()) {
        pending ||= saver.pending;
        saver.flush(true);
      }
      if (pending) event.preventDefault();
    });
  }

  /** Whether it makes sense to offer changes: the server decides each one. */
  get mayWrite(): boolean {
    return this.whoami?.anonymous === false;
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  notify(kind: Notice["kind"], text: string, href?: string): void {
    const notice: Notice = { id: this.nextNotice++, kind, text, href };
    this.notices = [...this.notices.slice(-3), notice];
    this.changed();
    if (kind === "info") setTimeout(() => this.dismiss(notice.id), noticeMs);
  }

  notifyError(what: string, error: HubmeshError | unknown, href?: string): void {
    const detail = error instanceof Error ? error.message : String(error);
    this.notify("error", `${what}: ${detail}`, href);
  }

  dismiss(id: number): void {
    this.notices = this.notices.filter((notice) => notice.id !== id);
    this.changed();
  }

  /** The editor of a node: the one that still has something to save, or a new one. */
  saverFor(path: string, node: MeshNode, timing?: Timing): Autosaver {
    let saver = this.savers.get(path);
    if (saver === undefined || saver.released) {
      saver = new Autosaver(this.client, this.live.node(path), path, node, timing);
      this.savers.set(path, saver);
    }
    saver.reopen();
    return saver;
  }

  /** The editor was left. What it could not save is told, with the way back to it. */
  leave(saver: Autosaver): void {
    let told = false;
    const stop = saver.onChange(() => {
      const current = this.savers.get(saver.path);
      if (saver.released && current === saver) this.savers.delete(saver.path);
      if (!told && saver.state.kind === "failed" && !saver.released) {
        told = true;
        this.notifyError(`Your edit of ${saver.path} is not saved`, saver.state.error, `/${saver.path}?tab=edit`);
      }
      if (saver.released) queueMicrotask(stop);
    });
    saver.close();
    if (saver.released) {
      stop();
      this.savers.delete(saver.path);
    }
  }

  private visibility(isHidden: boolean): void {
    clearTimeout(this.hidden);
    if (isHidden) {
      for (const saver of this.savers.values()) saver.flush();
      this.hidden = setTimeout(() => this.live.pause(), hiddenMs);
    } else this.live.resume();
  }

  private changed(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

const SessionContext = createContext<Session | undefined>(undefined);
export const SessionProvider = SessionContext.Provider;

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === undefined) throw new Error("no session above this component");
  return session;
}
