import { atOnceDelay, earnedMs, pause } from "./backoff.ts";
import { fromFailure, fromProblem, HubmeshError } from "./errors.ts";
import { parseData } from "./frames.ts";
import type { Transport } from "./http.ts";
import { openEventStream } from "./stream.ts";

export interface StatesOptions {
  signal: AbortSignal;
  /** Called when the stream is there (no error), and when it is lost (why). */
  onLink?: (lost: HubmeshError | undefined) => void;
  silenceMs?: number;
  random?: () => number;
}

/** The windows of the tries after the one at once, in milliseconds. Few follow these streams: they start narrow. */
const windowMs = 1_000;
const maxStatesWindowMs = 16_000;
/** The server sends one each second, or a comment each 15 s. */
const statesSilenceMs = 40_000;

/**
 * Follows a stream whose every event is the whole state, and yields each. A lost stream is opened again,
 * at once and then after random waits. Ends when the signal aborts; throws when the server refuses for good.
 */
export async function* followStates<T>(transport: Transport, route: string, name: string, options: StatesOptions): AsyncGenerator<T> {
  const random = options.random ?? Math.random;
  let attempt = 0;
  let hurried = -Infinity; // when it was last tried at once
  while (!options.signal.aborted) {
    let failure = new HubmeshError({ code: "network", retry: "after", title: "The connection was closed" });
    try {
      const stream = openEventStream(transport, transport.baseUrl + route, {
        signal: options.signal, silenceMs: options.silenceMs ?? statesSilenceMs, onOpen: () => options.onLink?.(undefined),
      });
      for await (const events of stream) {
        for (const event of events) {
          if (event.event === "end") throw fromProblem(parseData(event));
          if (event.event !== name) continue;
          attempt = 0;
          yield parseData(event) as T;
        }
      }
    } catch (cause) {
      if (options.signal.aborted) return;
      const error = fromFailure(cause);
      failure = error instanceof HubmeshError ? error : new HubmeshError({ code: "network", retry: "after", cause });
      if (failure.retry === "never") throw failure;
    }
    options.onLink?.(failure);
    const window = Math.min(maxStatesWindowMs, windowMs * 2 ** attempt);
    const moved = failure.retryAfter === undefined || failure.code === "shutting_down";
    if (attempt === 0 && moved && Date.now() - hurried >= earnedMs) {
      hurried = Date.now();
      await pause(atOnceDelay(random), options.signal);
    } else await pause(random() * window + (failure.retryAfter ?? 0) * 1000, options.signal);
    attempt++;
  }
}
