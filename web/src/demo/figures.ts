/**
 * What becomes of the keys that are typed: how many, how many of them the server is known to hold, and
 * how long they waited for that. It knows no clock: every call brings the time, in milliseconds.
 */
export class Figures {
  typed = 0;
  saved = 0;
  /** Milliseconds that the latest saves took, with all their tries, the latest last. */
  readonly latencies: number[] = [];
  /** Times of keys that are not known to be saved, in order, from `first` on. */
  private waiting: number[] = [];
  private first = 0;
  /** The longest wait of keys that were acknowledged in a second. */
  private readonly longestIn = new Map<number, number>();

  get unsaved(): number {
    return this.waiting.length - this.first;
  }

  /** `edits` were made so far, and the server is known to hold `acknowledged` of them. */
  count(edits: number, acknowledged: number, now: number): void {
    for (; this.typed < edits; this.typed++) this.waiting.push(now);
    const second = Math.floor(now / 1000);
    for (; this.saved < Math.min(acknowledged, this.typed); this.saved++) {
      const waited = now - (this.waiting[this.first++] as number);
      this.longestIn.set(second, Math.max(this.longestIn.get(second) ?? 0, waited));
    }
    if (this.first > 1024) {
      this.waiting = this.waiting.slice(this.first);
      this.first = 0;
    }
    for (const old of this.longestIn.keys()) {
      if (old >= second - windowSeconds) break;
      this.longestIn.delete(old);
    }
  }

  /** A save was acknowledged. */
  save(ms: number): void {
    this.latencies.push(ms);
    if (this.latencies.length > maxLatencies) this.latencies.shift();
  }

  /** The longest time, in milliseconds, that a key has waited within the last minute; one that waits still counts. */
  longest(now: number): number {
    const from = Math.floor(now / 1000) - windowSeconds;
    const ended = [...this.longestIn].reduce((max, [second, ms]) => (second >= from ? Math.max(max, ms) : max), 0);
    const oldest = this.waiting[this.first];
    return oldest === undefined ? ended : Math.max(ended, now - oldest);
  }
}

const windowSeconds = 60;
export const maxLatencies = 80;

/** The middle of some numbers; 0 of none. */
export function median(numbers: readonly number[]): number {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
