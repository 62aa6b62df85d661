import { describe, expect, it } from "vitest";
import { int, pick, seeded } from "../../client/js/test/random.ts";
import { mapPositions } from "../src/text/cursor.ts";
import { diff, lines, words } from "../src/text/diff.ts";
import { merge3 } from "../src/text/merge3.ts";

describe("the difference of two sequences", () => {
  it("turns the one into the other, for random ones", () => {
    for (let seed = 1; seed <= 600; seed++) {
      const random = seeded(seed);
      const sequence = (): string[] => Array.from({ length: int(random, 14) }, () => pick(random, ["a", "b", "c"]));
      const [a, b] = [sequence(), sequence()];
      const out: string[] = [];
      let at = 0;
      for (const hunk of diff(a, b)) {
        expect(hunk.a1 > hunk.a0 || hunk.b1 > hunk.b0, `seed ${seed}: no empty hunk`).toBe(true);
        out.push(...a.slice(at, hunk.a0), ...b.slice(hunk.b0, hunk.b1));
        at = hunk.a1;
      }
      out.push(...a.slice(at));
      expect(out, `seed ${seed}: ${a.join("")} -> ${b.join("")}`).toEqual(b);
    }
  });

  it("is shortest for a small example", () => {
    expect(diff([..."abcabba"], [..."cbabac"]).reduce((n, h) => n + h.a1 - h.a0 + h.b1 - h.b0, 0)).toBe(5);
  });

  it("of long texts without anything in common is one replacement, soon", () => {
    const a = Array.from({ length: 20_000 }, (_, n) => `a${n}`);
    const b = Array.from({ length: 20_000 }, (_, n) => `b${n}`);
    expect(diff(a, b)).toEqual([{ a0: 0, a1: 20_000, b0: 0, b1: 20_000 }]);
  });

  it("is over tokens that join to the text again", () => {
    const text = "Gai pâturage, 3 €\n\n  ¿x? 😀\tend";
    expect(lines(text).join("")).toBe(text);
    expect(words(text).join("")).toBe(text);
  });
});

describe("the merge of two edits", () => {
  it("takes changes of different lines from both", () => {
    expect(merge3("a\nb\nc\nd\n", "A\nb\nc\nd\n", "a\nb\nc\nD\n")).toEqual({ text: "A\nb\nc\nD\n", conflicts: 0 });
  });

  it("takes changes of different words in the same line from both", () => {
    expect(merge3("one two three four\n", "ONE two three four\n", "one two three FOUR\n").text).toBe("ONE two three FOUR\n");
  });

  it("keeps what both add at the same place, mine first", () => {
    expect(merge3("a\n", "a\nmine\n", "a\ntheirs\n")).toEqual({ text: "a\nmine\ntheirs\n", conflicts: 0 });
  });

  it("takes mine where both change the same words, and counts it", () => {
    expect(merge3("x\n", "mine\n", "theirs\n")).toEqual({ text: "mine\n", conflicts: 1 });
  });

  it("takes an equal change once", () => {
    expect(merge3("a\nb\n", "a\nB\n", "a\nB\n")).toEqual({ text: "a\nB\n", conflicts: 0 });
  });

  it("with one side unchanged is the other side, for random texts", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = seeded(seed);
      const text = (): string => Array.from({ length: int(random, 8) }, () => pick(random, ["a b\n", "c\n", "\n", "d e f\n", "g"])).join("");
      const [base, other] = [text(), text()];
      expect(merge3(base, base, other).text).toBe(other);
      expect(merge3(base, other, base).text).toBe(other);
      expect(merge3(base, other, other).text).toBe(other);
    }
  });

  it("loses no line that either side added, for random insertions", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = seeded(seed);
      const base = Array.from({ length: 1 + int(random, 6) }, (_, n) => `base ${n}\n`);
      const grown = (name: string): string[] => base.flatMap((line, n) => (random() < 0.4 ? [line, `${name} ${n}\n`] : [line]));
      const [mine, theirs] = [grown("mine"), grown("theirs")];
      const merged = lines(merge3(base.join(""), mine.join(""), theirs.join("")).text);
      expect([...merged].sort(), `seed ${seed}`).toEqual([...new Set([...mine, ...theirs])].sort());
    }
  });
});

describe("the cursor", () => {
  it("stays with its word when lines come before it", () => {
    expect(mapPositions("one\ntwo\n", "zero\none\ntwo\n", [4])).toEqual([9]);
  });

  it("stays with its word when words of its own line change", () => {
    expect(mapPositions("one two three", "ONE AND two three", [4, 13])).toEqual([8, 17]);
  });

  it("stays inside the text when its word is gone", () => {
    const [at] = mapPositions("one two three", "one", [8]);
    expect(at).toBeLessThanOrEqual(3);
  });
});
