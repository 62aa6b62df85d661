import { describe, expect, it } from "vitest";
import { Client } from "../src/client.ts";
import { HubmeshError, parseRetryAfter } from "../src/errors.ts";
import { encodePath } from "../src/path.ts";

function answering(status: number, body: string, headers: Record<string, string> = {}): Client {
  return new Client({ fetch: async () => new Response(body, { status, headers }) });
}

async function failure(call: Promise<unknown>): Promise<HubmeshError> {
  const error: unknown = await call.then(() => undefined, (cause: unknown) => cause);
  expect(error).toBeInstanceOf(HubmeshError);
  return error as HubmeshError;
}

describe("an error", () => {
  it("carries code, retry class, wait and every member of the problem document", async () => {
    const problem = { type: "/docs#starting", title: "Starting", status: 503, detail: "gate 'X' closed for 3 s", code: "starting", retry: "after", target: "a" };
    const client = answering(503, JSON.stringify(problem), { "content-type": "application/problem+json", "retry-after": "5" });
    const error = await failure(client.get("a"));
    expect([error.code, error.status, error.retry, error.retryAfter, error.transient]).toEqual(["starting", 503, "after", 5, true]);
    expect(error.problem["target"]).toBe("a");
  });

  it("of an answer that is not of this API is told as unexpected, without its page", async () => {
    const error = await failure(answering(502, "<html>Bad gateway</html>", { "content-type": "text/html" }).get("a"));
    expect([error.code, error.status, error.retry]).toEqual(["unexpected", 502, "after"]);
    expect(error.detail).not.toContain("<");
  });

  it("of a server that can not be reached is a network error to try again later", async () => {
    const client = new Client({ fetch: async () => Promise.reject(new TypeError("fetch failed")) });
    const error = await failure(client.whoami());
    expect([error.code, error.status, error.retry]).toEqual(["network", 0, "after"]);
  });

  it("of an answer that does not come in time is a timeout", async () => {
    const client = new Client({
      requestTimeoutMs: 5,
      fetch: (_input, init) => new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason))),
    });
    expect((await failure(client.get("a"))).code).toBe("timeout");
  });

  it("of a 200 that is not JSON is told as unexpected", async () => {
    expect((await failure(answering(200, "<html>").get("a"))).code).toBe("unexpected");
  });

  it("does not replace an abort by the caller", async () => {
    const abort = new AbortController();
    const client = new Client({
      fetch: (_input, init) => new Promise((_resolve, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason))),
    });
    const call = client.get("a", { signal: abort.signal });
    abort.abort();
    await expect(call).rejects.toHaveProperty("name", "AbortError");
  });

  it("reads Retry-After in seconds and as a date", () => {
    expect(parseRetryAfter("7")).toBe(7);
    expect(parseRetryAfter("Thu, 01 Jan 1970 00:00:10 GMT", 4_000)).toBe(6);
    expect(parseRetryAfter("soon")).toBeUndefined();
    expect(parseRetryAfter(null)).toBeUndefined();
  });
});

describe("a request", () => {
  // fault 41
  it("encodes each segment of a path once and refuses what a URL would swallow", () => {
    expect(encodePath("/Northwind/Gai_pâturage/a b%2f?#/")).toBe("Northwind/Gai_p%C3%A2turage/a%20b%252f%3F%23");
    for (const path of ["a/../b", "a//b", "./a"]) expect(() => encodePath(path)).toThrow(HubmeshError);
  });

  it("names method, condition, body and caller", async () => {
    const seen: [string, RequestInit][] = [];
    const client = new Client({
      baseUrl: "http://h/",
      token: () => "hm_x",
      fetch: async (input, init) => {
        seen.push([input, init ?? {}]);
        return new Response("{\"deleted\":1,\"version\":2}");
      },
    });
    await client.put("a b", { name: "n" }, { ifMatch: 4 });
    await client.patch("a", { name: null });
    await client.delete("a", { recursive: true });
    await client.upload("a", "content", "img/x.png", "bytes", { contentType: "image/png" });
    await client.upload("a", "content", "x", "bytes", { ifMatch: "\"t==\"" });
    await client.deleteFile("a", "content", "x", { ifMatch: "*" });
    await client.upload("a", "content", "x", "bytes", { ifAbsent: true });
    expect(new Headers(seen.at(-1)?.[1].headers).get("if-none-match")).toBe("*");
    const lines = seen.map(([url, init]) => [init.method, url, new Headers(init.headers).get("if-match"), new Headers(init.headers).get("content-type"), init.body]);
    expect(lines).toEqual([
      ["PUT", "http://h/api/nodes/a%20b", "\"4\"", "application/json", "{\"name\":\"n\"}"],
      ["PATCH", "http://h/api/nodes/a", null, "application/merge-patch+json", "{\"name\":null}"],
      ["DELETE", "http://h/api/nodes/a?recursive=true", null, null, undefined],
      ["PUT", "http://h/api/files/a/content/img/x.png", null, "image/png", "bytes"],
      ["PUT", "http://h/api/files/a/content/x", "\"t==\"", "application/octet-stream", "bytes"],
      ["DELETE", "http://h/api/files/a/content/x", "*", null, undefined],
      ["PUT", "http://h/api/files/a/content/x", null, "application/octet-stream", "bytes"],
    ]);
    expect(new Headers(seen[0]?.[1].headers).get("authorization")).toBe("Bearer hm_x");
  });
});

describe("the outcome of a write that failed", () => {
  const of = (code: string, status: number, problem = {}) => new HubmeshError({ code, status, problem }).outcomeUnknown;

  it("is not known when no answer came, none of this API, or one that says so", () => {
    expect([of("network", 0), of("timeout", 0), of("unexpected", 502), of("unexpected", 200), of("lapsed", 503), of("internal", 500), of("shutting_down", 503, { outcome: "unknown" })]).toEqual(Array(7).fill(true));
  });

  it("is known when the server refused", () => {
    expect([of("starting", 503), of("shutting_down", 503), of("unavailable", 503), of("overloaded", 503), of("undetermined", 503), of("stale", 412), of("forbidden", 403), of("unexpected", 413)]).toEqual(Array(8).fill(false));
  });
});
