/**
 * When to come back after a connection is lost. A connection that was good and breaks is tried again
 * at once: behind one address another silo may be there already. After that, full jitter over a window
 * that starts wide: the clients of a server that restarts must not all come back in the same second, so
 * the first window already spreads them, and an outage that lasts spreads them further.
 */

/** Width of the first window, in milliseconds. */
export const firstWindowMs = 8_000;
/** Width of the widest window, in milliseconds. */
export const maxWindowMs = 60_000;
/** The try at once is spread over this many milliseconds. */
export const atOnceMs = 150;
/** Tries at once are at least this many milliseconds apart: a connection that breaks again and again is not hammered. */
export const earnedMs = 2_000;

/**
 * Milliseconds to wait before the attempt with the given number, from 0.
 * `retryAfterMs` is what the server asked for: it is waited in full, and the jitter comes on top.
 */
export function reconnectDelay(attempt: number, random: () => number, retryAfterMs = 0): number {
  const window = Math.min(maxWindowMs, firstWindowMs * 2 ** Math.min(attempt, 16));
  return Math.floor(retryAfterMs + random() * window);
}

/** Milliseconds to wait before the try at once. */
export function atOnceDelay(random: () => number): number {
  return Math.floor(random() * atOnceMs);
}

/** Resolves after a time, or when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}
