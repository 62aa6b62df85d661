import { atOnceDelay, earnedMs, pause, reconnectDelay } from "./backoff.ts";
import type { Client } from "./client.ts";
import { hasCode, HubmeshError } from "./errors.ts";
import { parseData, parseFrame } from "./frames.ts";
import { initialMirror, stepMirror, type MirrorEvent, type MirrorState } from "./mirror.ts";
import { encodePath } from "./path.ts";
import { openEventStream } from "./stream.ts";
import type { MeshNode } from "./types.ts";

export interface WatchOptions {
  signal: AbortSignal;
  silenceMs?: number;
  random?: () => number;
}

/**
 * Watches one node on a connection of its own and yields each new state. A lost connection is made
 * again, at once and then after random waits, and resumed from the last event (Last-Event-ID), so that
 * nothing is lost or seen twice.
 * Ends when the signal aborts; throws when the server ends the watch for good.
 */
export async function* watchNode(client: Client, path: string, options: WatchOptions): AsyncGenerator<MirrorState> {
  const url = `${client.baseUrl}/api/watch/${encodePath(path)}`;
  const random = options.random ?? Math.random;
  let state = initialMirror;
  let held = { version: 0, id: "" }; // the last version that an event told, and the event's id
  let attempt = 0;
  let good = false; // a frame came over this connection
  let hurried = -Infinity; // when it was last tried at once
  const step = (event: MirrorEvent): { changed: boolean; fetch: boolean } => {
    const before = state;
    const result = stepMirror(state, event);
    state = result.state;
    return { changed: before.node !== state.node || before.status !== state.status || before.version !== state.version, fetch: result.fetch };
  };
  while (!options.signal.aborted) {
    let failure: HubmeshError | undefined;
    try {
      const headers: Record<string, string> = state.version > 0 && state.status !== "failed" ? { "Last-Event-ID": lastEventId(state.version, held) } : {};
      const silence = options.silenceMs === undefined ? {} : { silenceMs: options.silenceMs };
      for await (const events of openEventStream(client, url, { ...silence, headers, signal: options.signal })) {
        attempt = 0;
        good = true;
        for (const event of events) {
          const frame = parseFrame(event, parseData(event));
          if (frame === undefined) continue;
          if (frame.kind === "end") throw frame.error;
          let { changed, fetch } = step(frame);
          while (fetch) {
            const next = step({ kind: "fetched", node: await fetchNode(client, path, options.signal) });
            changed ||= next.changed;
            fetch = next.fetch;
          }
          if (frame.version === state.version) held = { version: frame.version, id: event.id };
          if (changed) yield state;
        }
      }
    } catch (cause) {
      if (options.signal.aborted) return;
      failure = cause instanceof HubmeshError ? cause : new HubmeshError({ code: "network", retry: "after", cause });
      if (failure.retry === "never") throw failure;
    }
    // The server may have been restored meanwhile: its next full frame is taken as it is.
    step({ kind: "connected" });
    const moved = failure?.retryAfter === undefined || failure.code === "shutting_down";
    const atOnce = good && moved && Date.now() - hurried >= earnedMs;
    if (atOnce) hurried = Date.now();
    good = false;
    await pause(atOnce ? atOnceDelay(random) : reconnectDelay(attempt++, random, (failure?.retryAfter ?? 0) * 1000), options.signal);
  }
}

/** The id names the very row; a version that was fetched has none and is named by its number. */
function lastEventId(version: number, held: { version: number; id: string }): string {
  return held.version === version && held.id !== "" ? held.id : String(version);
}

/** Absent here means deleted meanwhile, which the stream tells: the watch goes on. */
async function fetchNode(client: Client, path: string, signal: AbortSignal): Promise<MeshNode> {
  try {
    return await client.get(path, { signal });
  } catch (cause) {
    if (!hasCode(cause, "not_found")) throw cause;
    throw new HubmeshError({ code: "network", retry: "after", title: "The node changed while it was read", cause });
  }
}
