import { fromFailure, fromResponse, HubmeshError } from "./errors.ts";
import { authorization, type Transport } from "./http.ts";
import { SseParser, type SseEvent } from "./sse.ts";

/** The server sends a comment every 15 s: this long without a byte means that the link is dead. */
export const silenceLimitMs = 40_000;

export interface EventStreamOptions {
  headers?: Record<string, string>;
  signal: AbortSignal;
  /** Milliseconds without a byte after which the stream fails. */
  silenceMs?: number;
  /** Called once when the server has accepted the stream. */
  onOpen?: () => void;
}

/**
 * Opens an event stream and yields its events until it ends. Returns when the server closes the
 * stream; throws a HubmeshError when it is refused, breaks or falls silent, and the signal's reason when aborted.
 */
export async function* openEventStream(transport: Transport, url: string, options: EventStreamOptions): AsyncGenerator<SseEvent[]> {
  const silenceMs = options.silenceMs ?? silenceLimitMs;
  const watchdog = new AbortController();
  const stop = (): void => watchdog.abort(options.signal.reason);
  if (options.signal.aborted) stop();
  options.signal.addEventListener("abort", stop, { once: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const rearm = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      watchdog.abort(new HubmeshError({
        code: "network",
        retry: "after",
        title: "The live connection fell silent",
        detail: `No byte came for ${Math.round(silenceMs / 1000)} s.`,
      }));
    }, silenceMs);
  };
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    rearm();
    const response = await transport.fetch(url, {
      headers: { Accept: "text/event-stream", ...authorization(transport), ...options.headers },
      credentials: "same-origin",
      cache: "no-store",
      signal: watchdog.signal,
    });
    if (!response.ok) throw await fromResponse(response);
    if (response.body === null || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
      throw new HubmeshError({ code: "unexpected", status: response.status, retry: "after", title: "The answer is not an event stream" });
    }
    reader = response.body.getReader();
    options.onOpen?.();
    const parser = new SseParser();
    for (;;) {
      rearm();
      const { done, value } = await raced(reader.read(), watchdog.signal);
      if (done) return;
      const events = parser.push(value);
      if (events.length > 0) yield events;
    }
  } catch (cause) {
    if (options.signal.aborted) throw options.signal.reason;
    throw fromFailure(watchdog.signal.aborted ? watchdog.signal.reason : cause);
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", stop);
    void reader?.cancel().catch(() => undefined);
    watchdog.abort();
  }
}

/** A read that also ends when the signal aborts: a body need not know the signal of its request. */
function raced<T>(read: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    read.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}
