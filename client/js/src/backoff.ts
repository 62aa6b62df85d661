/**
 * When to come back after a connection is lost. Full jitter over a window that starts wide: the
 * clients of a server that restarts must not all come back in the same second, so the first window
 * already spreads them, and an outage that lasts spreads them further.
 */

/** Width of the first window, in milliseconds. */
export const firstWindowMs = 8_000;
/** Width of the widest window, in milliseconds. */
export const maxWindowMs = 60_000;

/**
 * Milliseconds to wait before the attempt with the given number, from 0.
 * `retryAfterMs` is what the server asked for: it is waited in full, and the jitter comes on top.
 */
export function reconnectDelay(attempt: number, random: () => number, retryAfterMs = 0): number {
  const window = Math.min(maxWindowMs, firstWindowMs * 2 ** Math.min(attempt, 16));
  return Math.floor(retryAfterMs + random() * window);
}
