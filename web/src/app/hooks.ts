import { HubmeshError, type LiveStatus, type Snapshot, type StatesOptions, type View } from "@hubmesh/client";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Place } from "./place.ts";
import { useSession, type Notice } from "./session.ts";

interface Observable {
  subscribe(listener: () => void): () => void;
}

/** Draws the component again when something observable changes. */
export function useChanges(subscribe: ((listener: () => void) => () => void) | undefined): void {
  const [, draw] = useState(0);
  useLayoutEffect(() => subscribe?.(() => draw((n) => n + 1)), [subscribe]);
}

export function useObservable(observable: Observable): void {
  useChanges(useCallback((listener: () => void) => observable.subscribe(listener), [observable]));
}

export function usePlace(): Place {
  const { router } = useSession();
  useObservable(router);
  return router.place;
}

export function useLiveStatus(): LiveStatus {
  const { live } = useSession();
  useChanges(useCallback((listener: () => void) => live.onStatus(listener), [live]));
  return live.status;
}

export function useNotices(): readonly Notice[] {
  const session = useSession();
  useObservable(session);
  return session.notices;
}

const loading: Snapshot<never> = { status: "loading", value: undefined, version: 0, error: undefined };

/** A live view of a node, children or a query; `argument` undefined is none. */
export function useLive<T>(open: (argument: string) => View<T>, argument: string | undefined): Snapshot<T> {
  const [, draw] = useState(0);
  const held = useRef<{ argument: string; view: View<T> } | undefined>(undefined);
  useLayoutEffect(() => {
    if (argument === undefined) return;
    const view = open(argument);
    held.current = { argument, view };
    const stop = view.subscribe(() => draw((n) => n + 1));
    draw((n) => n + 1);
    return () => {
      stop();
      view.close();
      held.current = undefined;
    };
  }, [argument]);
  return held.current !== undefined && held.current.argument === argument ? held.current.view.current : loading;
}

export interface Loaded<T> {
  value: T | undefined;
  error: HubmeshError | undefined;
  loading: boolean;
  reload: () => void;
}

/**
 * Reads something once for a key, and again for another key or by reload. While the part of the key
 * before the first "\n" stays, the last value stays too, so that a new version does not blink.
 */
export function useLoad<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: HubmeshError; loading: boolean }>({ key: "", loading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (key === undefined) return;
    const abort = new AbortController();
    setState((old) => (subject(old.key) === subject(key) && old.value !== undefined ? { key, value: old.value, loading: true } : { key, loading: true }));
    load(abort.signal).then(
      (value) => { if (!abort.signal.aborted) setState({ key, value, loading: false }); },
      (cause: unknown) => {
        if (abort.signal.aborted) return;
        const error = cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", title: "Something went wrong in the page", detail: String(cause), cause });
        setState({ key, error, loading: false });
      },
    );
    return () => abort.abort();
  }, [key, round]);
  const reload = useCallback(() => setRound((n) => n + 1), []);
  const own = key !== undefined && subject(state.key) === subject(key);
  return { value: own ? state.value : undefined, error: own ? state.error : undefined, loading: !own || state.loading, reload };
}

export interface Followed<T> {
  value: T | undefined;
  /** Set: refused for good. */
  error: HubmeshError | undefined;
  /** Set: the stream is lost and tried again; the value is the last one. */
  lost: HubmeshError | undefined;
  reload: () => void;
}

/** Follows a stream of whole states while the page is seen; `follow` must not change. */
export function useStates<T>(follow: (options: StatesOptions) => AsyncGenerator<T>): Followed<T> {
  const [state, setState] = useState<Omit<Followed<T>, "reload">>({ value: undefined, error: undefined, lost: undefined });
  const [round, setRound] = useState(0);
  const hidden = useHidden();
  useEffect(() => {
    if (hidden) return;
    const abort = new AbortController();
    const { signal } = abort;
    setState((old) => ({ ...old, error: undefined }));
    void (async () => {
      try {
        for await (const value of follow({ signal, onLink: (lost) => setState((old) => (signal.aborted || old.lost === lost ? old : { ...old, lost })) })) {
          if (!signal.aborted) setState({ value, error: undefined, lost: undefined });
        }
      } catch (cause) {
        if (signal.aborted) return;
        const error = cause instanceof HubmeshError ? cause : new HubmeshError({ code: "unexpected", title: "Something went wrong in the page", detail: String(cause), cause });
        setState((old) => ({ ...old, error, lost: undefined }));
      }
    })();
    return () => abort.abort();
  }, [follow, hidden, round]);
  return { ...state, reload: useCallback(() => setRound((n) => n + 1), []) };
}

/** Whether nobody can see the page. */
export function useHidden(): boolean {
  const [hidden, setHidden] = useState(document.hidden);
  useEffect(() => {
    const onChange = (): void => setHidden(document.hidden);
    document.addEventListener("visibilitychange", onChange);
    return () => document.removeEventListener("visibilitychange", onChange);
  }, []);
  return hidden;
}

/** The time now, drawn again at an interval. */
export function useNow(ms: number): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

function subject(key: string): string {
  return key.split("\n", 1)[0] ?? "";
}

/** A value that follows another after it has been still for some milliseconds. */
export function useDebounced<T>(value: T, ms: number): T {
  const [held, setHeld] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setHeld(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return held;
}
