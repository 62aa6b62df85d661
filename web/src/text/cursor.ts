import { diff, lines, words, type Hunk } from "./diff.ts";

/** Where positions in one text are in another that it became: the cursor stays with the words around it. */
export function mapPositions(from: string, to: string, positions: readonly number[]): number[] {
  const edits = characterHunks(from, to);
  return positions.map((position) => {
    let shift = 0;
    for (const { a0, a1, b0, b1 } of edits) {
      if (position <= a0) break;
      if (position < a1) return b0 + Math.min(position - a0, b1 - b0);
      shift = b1 - a1;
    }
    return position + shift;
  });
}

/** Changes in characters: by lines, and by words inside the changed lines. */
function characterHunks(from: string, to: string): Hunk[] {
  const [a, b] = [lines(from), lines(to)];
  return inCharacters(a, b, diff(a, b)).flatMap((hunk) => {
    const [wa, wb] = [words(from.slice(hunk.a0, hunk.a1)), words(to.slice(hunk.b0, hunk.b1))];
    return inCharacters(wa, wb, diff(wa, wb)).map((h) => ({
      a0: hunk.a0 + h.a0, a1: hunk.a0 + h.a1, b0: hunk.b0 + h.b0, b1: hunk.b0 + h.b1,
    }));
  });
}

function inCharacters(a: string[], b: string[], hunks: Hunk[]): Hunk[] {
  const [ca, cb] = [ends(a), ends(b)];
  return hunks.map(({ a0, a1, b0, b1 }) => ({ a0: ca[a0] ?? 0, a1: ca[a1] ?? 0, b0: cb[b0] ?? 0, b1: cb[b1] ?? 0 }));
}

function ends(tokens: string[]): number[] {
  const out = [0];
  let sum = 0;
  for (const token of tokens) out.push((sum += token.length));
  return out;
}
