import { diff, lines, words, type Hunk } from "./diff.ts";

export interface Merged {
  text: string;
  /** Stretches that both sides changed differently: mine was taken. */
  conflicts: number;
}

/**
 * Merges two texts that grew from the same base: by lines, and by words where both changed the same
 * lines. What both inserted at the same place is kept, mine first. Where both changed the very same
 * words mine is taken: the other text stays in the history, and two editors come to an end instead of
 * adding to each other's additions.
 */
export function merge3(base: string, mine: string, theirs: string): Merged {
  if (mine === theirs || base === theirs) return { text: mine, conflicts: 0 };
  if (base === mine) return { text: theirs, conflicts: 0 };
  return mergeTokens(lines(base), lines(mine), lines(theirs), (b, m, t) => mergeTokens(words(b), words(m), words(t), mineWins));
}

function mineWins(_base: string, mine: string): Merged {
  return { text: mine, conflicts: 1 };
}

type Resolve = (base: string, mine: string, theirs: string) => Merged;

function mergeTokens(base: string[], mine: string[], theirs: string[], resolve: Resolve): Merged {
  const out: string[] = [];
  let conflicts = 0;
  let at = 0;
  for (const { start, end, left, right } of groups(diff(base, mine), diff(base, theirs))) {
    out.push(...base.slice(at, start));
    at = end;
    const m = sideOf(mine, left, start, end);
    const t = sideOf(theirs, right, start, end);
    if (left.length === 0) out.push(t);
    else if (right.length === 0 || m === t) out.push(m);
    else if (start === end) out.push(m, t);
    else {
      const merged = resolve(base.slice(start, end).join(""), m, t);
      out.push(merged.text);
      conflicts += merged.conflicts;
    }
  }
  out.push(...base.slice(at));
  return { text: out.join(""), conflicts };
}

interface Group {
  /** The stretch of the base that the group covers. */
  start: number;
  end: number;
  left: Hunk[];
  right: Hunk[];
}

/** Puts changes of the two sides together whose stretches of the base overlap, or that insert at the same place. */
function groups(left: Hunk[], right: Hunk[]): Group[] {
  const out: Group[] = [];
  const all = [...left.map((hunk) => ({ hunk, isLeft: true })), ...right.map((hunk) => ({ hunk, isLeft: false }))];
  all.sort((x, y) => x.hunk.a0 - y.hunk.a0 || x.hunk.a1 - y.hunk.a1);
  for (const { hunk, isLeft } of all) {
    let group = out.at(-1);
    const joins = group !== undefined && (hunk.a0 < group.end || (hunk.a0 === group.start && hunk.a1 === group.end));
    if (group === undefined || !joins) {
      group = { start: hunk.a0, end: hunk.a1, left: [], right: [] };
      out.push(group);
    }
    group.end = Math.max(group.end, hunk.a1);
    (isLeft ? group.left : group.right).push(hunk);
  }
  return out;
}

/** What one side has in place of base[start..end): its hunks, and the base between them. */
function sideOf(side: string[], hunks: Hunk[], start: number, end: number): string {
  const first = hunks[0];
  const last = hunks.at(-1);
  if (first === undefined || last === undefined) return "";
  // Outside its hunks the side equals the base, so that positions differ by a constant there.
  return side.slice(first.b0 - (first.a0 - start), last.b1 + (end - last.a1)).join("");
}
