/** A seeded generator (mulberry32), so that a failing case can be run again. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export function int(random: () => number, below: number): number {
  return Math.floor(random() * below);
}

export function pick<T>(random: () => number, items: readonly T[]): T {
  return items[int(random, items.length)] as T;
}
