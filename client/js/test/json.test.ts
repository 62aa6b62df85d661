import { describe, expect, it } from "vitest";
import { ExactNumber, parseJson, printJson } from "../src/json.ts";
import { applyMergePatch, diffMergePatch, equalJson, isObject } from "../src/merge.ts";

const text = "{\"list\":[{\"id\":12345678901234567890,\"v\":1}],\"one\":1.0,\"e\":1E400,\"z\":-0,\"s\":\"12345678901234567890 \\\" 1.0\",\"__proto__\":{\"n\":0.10}}";

describe("JSON", () => {
  it("is written as it was read, whatever its numbers", () => {
    expect(printJson(parseJson(text))).toBe(text);
    expect(printJson(parseJson("{\"a\":[1.50,2]}"), 2)).toBe("{\n  \"a\": [\n    1.50,\n    2\n  ]\n}");
    expect(JSON.stringify(JSON.parse(text))).not.toBe(text); // control
  });

  it("has plain numbers where JavaScript holds them as written", () => {
    expect(parseJson("{\"a\":[1,-2.5,1e+21],\"b\":\"x\"}")).toEqual({ a: [1, -2.5, 1e21], b: "x" });
    expect(parseJson("12345678901234567890")).toBeInstanceOf(ExactNumber);
  });

  it("that is none is refused with the reader's words", () => {
    expect(() => parseJson("{\"a\":01}")).toThrow(SyntaxError);
    expect(() => parseJson("{\"a\":12345678901234567890,}")).toThrow(SyntaxError);
  });

  it("keeps exact numbers in patches that do not touch them", () => {
    const from = parseJson("{\"id\":12345678901234567890,\"list\":[{\"id\":12345678901234567891,\"v\":1}]}");
    const to = parseJson("{\"id\":12345678901234567890,\"list\":[{\"id\":12345678901234567891,\"v\":2}]}");
    const patch = diffMergePatch(from, to)!;
    expect(printJson(patch)).toBe("{\"list\":[{\"id\":12345678901234567891,\"v\":2}]}");
    expect(printJson(applyMergePatch(from, patch))).toBe(printJson(to));
    expect(equalJson(parseJson("12345678901234567890"), parseJson("12345678901234567891"))).toBe(false);
    expect(isObject(parseJson("1.0"))).toBe(false);
  });
});
