/** A changed stretch: a[a0..a1) became b[b0..b1). */
export interface Hunk {
  a0: number;
  a1: number;
  b0: number;
  b1: number;
}

/** Edits beyond this many are not told apart: the stretch counts as replaced. It bounds time and memory. */
const maxEdits = 1200;

/** The changes from one sequence to another (Myers' greedy algorithm), in order, apart from each other. */
export function diff(a: readonly string[], b: readonly string[]): Hunk[] {
  let start = 0;
  const shorter = Math.min(a.length, b.length);
  while (start < shorter && a[start] === b[start]) start++;
  let tail = 0;
  while (tail < shorter - start && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [n, m] = [a.length - start - tail, b.length - start - tail];
  if (n === 0 && m === 0) return [];
  const whole: Hunk[] = [{ a0: start, a1: start + n, b0: start, b1: start + m }];
  if (n === 0 || m === 0) return whole;
  const matches = longestPath(a, b, start, n, m);
  if (matches === undefined) return whole;
  const hunks: Hunk[] = [];
  let [x, y] = [start, start];
  for (const [mx, my] of [...matches, [start + n, start + m] as const]) {
    if (mx > x || my > y) hunks.push({ a0: x, a1: mx, b0: y, b1: my });
    [x, y] = [mx + 1, my + 1];
  }
  return hunks;
}

/** The matching positions along a shortest edit script; undefined when it is too long. */
function longestPath(a: readonly string[], b: readonly string[], offset: number, n: number, m: number): [number, number][] | undefined {
  const limit = Math.min(n + m, maxEdits);
  const trace: Int32Array[] = [];
  const furthest = new Int32Array(2 * limit + 3);
  const middle = limit + 1;
  for (let edits = 0; edits <= limit; edits++) {
    trace.push(furthest.slice(middle - edits - 1, middle + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && at(furthest, middle + k - 1) < at(furthest, middle + k + 1));
      let x = down ? at(furthest, middle + k + 1) : at(furthest, middle + k - 1) + 1;
      let y = x - k;
      while (x < n && y < m && a[offset + x] === b[offset + y]) {
        x++;
        y++;
      }
      furthest[middle + k] = x;
      if (x >= n && y >= m) return backtrack(trace, edits, n, m, offset);
    }
  }
  return undefined;
}

function backtrack(trace: Int32Array[], edits: number, n: number, m: number, offset: number): [number, number][] {
  const matches: [number, number][] = [];
  let [x, y] = [n, m];
  for (let d = edits; d >= 0; d--) {
    const row = trace[d] as Int32Array;
    const cell = (k: number): number => at(row, k + d + 1);
    const k = x - y;
    const down = k === -d || (k !== d && cell(k - 1) < cell(k + 1));
    const before = d === 0 ? 0 : down ? k + 1 : k - 1;
    const px = d === 0 ? 0 : cell(before);
    const py = d === 0 ? 0 : px - before;
    const floorX = d === 0 ? 0 : down ? px : px + 1;
    const floorY = d === 0 ? 0 : floorX - k;
    while (x > floorX && y > floorY) matches.push([offset + --x, offset + --y]);
    [x, y] = [px, py];
  }
  return matches.reverse();
}

function at(cells: Int32Array, index: number): number {
  return cells[index] as number;
}

/** Lines with their line ends, so that joining them gives the text again. */
export function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+/g) ?? [];
}

/** Words, runs of space, and single other characters; joining them gives the text again. */
export function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}_]+|[^\S\n]+|\n|[^\p{L}\p{N}\p{M}_\s]/gu) ?? [];
}
