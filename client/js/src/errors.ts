import type { JsonObject } from "./types.ts";

/** What the caller may do: change the request, re-read and try at once, or try again later. */
export type RetryClass = "never" | "now" | "after";

/**
 * Every failure of the client. `code` is the stable code of the problem document, or one of the
 * client's own: `network` (no answer came), `timeout` (the client's bound lapsed), `unexpected`
 * (an answer that is not of this API), `diverged` (a mirror that could not be brought up to date),
 * `too_many_subscriptions`.
 */
export class HubmeshError extends Error {
  override readonly name = "HubmeshError";
  readonly code: string;
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  readonly retry: RetryClass;
  /** Seconds that the server asks to wait; undefined when it does not say. */
  readonly retryAfter: number | undefined;
  readonly title: string;
  readonly detail: string;
  /** The documentation anchor of the code. */
  readonly type: string;
  /** The whole problem document: further members are named in the table of errors. */
  readonly problem: JsonObject;

  constructor(init: {
    code: string;
    status?: number;
    retry?: RetryClass;
    retryAfter?: number | undefined;
    title?: string;
    detail?: string;
    type?: string;
    problem?: JsonObject;
    cause?: unknown;
  }) {
    super(init.detail || init.title || init.code, init.cause === undefined ? undefined : { cause: init.cause });
    this.code = init.code;
    this.status = init.status ?? 0;
    this.retry = init.retry ?? "never";
    this.retryAfter = init.retryAfter;
    this.title = init.title ?? init.code;
    this.detail = init.detail ?? "";
    this.type = init.type ?? "about:blank";
    this.problem = init.problem ?? {};
  }

  /** The same request may succeed later. */
  get transient(): boolean {
    return this.retry === "after";
  }

  /**
   * A write that failed like this may have been done all the same: no answer came, or none of this API, or
   * the one that says so. Read what was written to find out.
   */
  get outcomeUnknown(): boolean {
    if (this.problem["outcome"] === "unknown" || this.code === "network" || this.code === "timeout") return true;
    const refused = this.status >= 400 && this.status < 500;
    return !refused && (this.code === "unexpected" || this.code === "lapsed" || this.code === "internal");
  }
}

/** Whether a value is an error of the given code. */
export function hasCode(error: unknown, ...codes: string[]): error is HubmeshError {
  return error instanceof HubmeshError && codes.includes(error.code);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Reads a problem document that did not come as a response of its own, such as that of an `end` event. */
export function fromProblem(problem: JsonObject, retryAfter?: number): HubmeshError {
  const status = typeof problem["status"] === "number" ? problem["status"] : 0;
  const retry = problem["retry"];
  return new HubmeshError({
    code: text(problem["code"]) || "unexpected",
    status,
    retry: retry === "now" || retry === "after" || retry === "never" ? retry : retryOfStatus(status),
    retryAfter: retryAfter ?? (typeof problem["retryAfter"] === "number" ? problem["retryAfter"] : undefined),
    title: text(problem["title"]),
    detail: text(problem["detail"]),
    type: text(problem["type"]),
    problem,
  });
}

/** Reads the error out of a response that is not ok. Never throws. */
export async function fromResponse(response: Response): Promise<HubmeshError> {
  const retryAfter = parseRetryAfter(response.headers.get("retry-after"));
  const type = response.headers.get("content-type") ?? "";
  const body = await response.text().catch(() => "");
  if (type.includes("json")) {
    try {
      const problem: unknown = JSON.parse(body);
      if (problem !== null && typeof problem === "object" && !Array.isArray(problem)) {
        return fromProblem({ status: response.status, ...(problem as JsonObject) }, retryAfter);
      }
    } catch {
      // Not JSON after all: told below as an answer of something else.
    }
  }
  return new HubmeshError({
    code: "unexpected",
    status: response.status,
    retry: retryOfStatus(response.status),
    retryAfter,
    title: `The server answered ${response.status}`,
    detail: body.length <= 300 && !/[<>]/.test(body) ? body.trim() : "The answer is not of the hubmesh API; a proxy may stand in between.",
  });
}

/** The error of a request that got no answer. An abort by the caller is passed on as it is. */
export function fromFailure(cause: unknown): unknown {
  if (cause instanceof HubmeshError) return cause;
  const name = cause instanceof Error ? cause.name : "";
  if (name === "AbortError") return cause;
  if (name === "TimeoutError") {
    return new HubmeshError({ code: "timeout", retry: "after", title: "No answer in time", detail: "The server did not answer in time.", cause });
  }
  return new HubmeshError({ code: "network", retry: "after", title: "No connection", detail: "The server can not be reached.", cause });
}

function retryOfStatus(status: number): RetryClass {
  if (status === 429 || status === 502 || status === 503 || status === 504 || status === 507) return "after";
  return status === 412 ? "now" : "never";
}

/** Seconds of a Retry-After header in either form; undefined when absent or not readable. */
export function parseRetryAfter(value: string | null, now: number = Date.now()): number | undefined {
  if (value === null || value.trim() === "") return undefined;
  if (/^\s*\d+\s*$/.test(value)) return Math.min(Number(value), 24 * 3600);
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}
