import { describe, expect, it } from "vitest";
import { applyMergePatch, diffMergePatch, equalJson } from "../src/merge.ts";
import type { Json } from "../src/types.ts";
import { int, pick, seeded } from "./random.ts";

// The cases of RFC 7396, appendix A: target, patch, result.
const cases: [Json, Json, Json][] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [["a", "b"], ["c", "d"], ["c", "d"]],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

describe("merge patches", () => {
  it("apply as the RFC's examples say", () => {
    for (const [target, patch, result] of cases) expect(applyMergePatch(target, patch)).toEqual(result);
  });

  it("leave target and patch as they are and share what does not change", () => {
    const target = { a: { b: [1] }, c: { d: 1 } };
    const frozen = structuredClone(target);
    const result = applyMergePatch(target, { c: { d: 2 } }) as typeof target;
    expect(target).toEqual(frozen);
    expect(result.a).toBe(target.a);
  });

  it("treat __proto__ as data", () => {
    const result = applyMergePatch({}, JSON.parse("{\"__proto__\":{\"x\":1}}") as Json) as Record<string, unknown>;
    expect(Object.hasOwn(result, "__proto__")).toBe(true);
    expect((result as { x?: number }).x).toBeUndefined();
  });

  it("made from a pair turn the one into the other, or are refused only where the goal holds a null", () => {
    for (let seed = 1; seed <= 1000; seed++) {
      const random = seeded(seed);
      const [from, to] = [value(random, 3), value(random, 3)];
      const patch = diffMergePatch(from, to);
      if (patch === undefined) expect(JSON.stringify(to), `seed ${seed}`).toContain("null");
      else expect(applyMergePatch(from, patch), `seed ${seed}`).toEqual(to);
    }
  });

  it("made from equal values are empty, whatever the order of members", () => {
    expect(diffMergePatch({ a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 })).toEqual({});
    expect(equalJson({ a: 1, b: undefined as unknown as Json }, { a: 1, c: 1 })).toBe(false);
  });
});

function value(random: () => number, depth: number): Json {
  const kind = depth === 0 ? int(random, 4) : int(random, 7);
  if (kind === 0) return int(random, 3);
  if (kind === 1) return pick(random, ["", "x", "y"]);
  if (kind === 2) return random() < 0.5;
  if (kind === 3) return random() < 0.2 ? null : "z";
  if (kind === 4) return Array.from({ length: int(random, 3) }, () => value(random, depth - 1));
  return Object.fromEntries(Array.from({ length: int(random, 4) }, () => [pick(random, ["a", "b", "c", "d"]), value(random, depth - 1)]));
}
