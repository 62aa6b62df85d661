import { fromFailure, fromResponse, HubmeshError } from "./errors.ts";
import { parseJson, printJson } from "./json.ts";

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

export interface Transport {
  /** Origin and path prefix of the server; "" is the page's own origin. */
  readonly baseUrl: string;
  readonly token: string | (() => string | undefined) | undefined;
  readonly fetch: Fetch;
  /** Bound on a request that is no stream and no upload, in milliseconds. */
  readonly requestTimeoutMs: number;
}

export interface RequestOptions {
  method?: string;
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as it is. */
  body?: BodyInit;
  signal?: AbortSignal | undefined;
  /** The request outlives the page that sent it; its body is then bounded by the browser (64 KiB). */
  keepalive?: boolean;
  /** No bound of the client's: for uploads and streams. */
  unbounded?: boolean;
}

/** Longer than any bound of the server's, so that the server's own diagnosis comes first. */
export const defaultRequestTimeoutMs = 60_000;

/** Headers that name the caller. */
export function authorization(transport: Transport): Record<string, string> {
  const token = typeof transport.token === "function" ? transport.token() : transport.token;
  return token === undefined || token === "" ? {} : { Authorization: `Bearer ${token}` };
}

/** The URL of a route with its query; members that are undefined or false are left out. */
export function urlOf(transport: Transport, route: string, query: RequestOptions["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === false) continue;
    parameters.append(name, value === true ? "true" : String(value));
  }
  const text = parameters.toString();
  return transport.baseUrl + route + (text === "" ? "" : `?${text}`);
}

/** Sends a request. Throws a HubmeshError for every answer that is not ok, and for none. */
export async function send(transport: Transport, route: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json, application/problem+json", ...authorization(transport), ...options.headers };
  const init: RequestInit = { method: options.method ?? "GET", headers, credentials: "same-origin", cache: "no-store" };
  if (options.json !== undefined) {
    headers["Content-Type"] ??= "application/json";
    init.body = printJson(options.json);
  } else if (options.body !== undefined) init.body = options.body;
  if (options.keepalive === true) init.keepalive = true;
  const signals: AbortSignal[] = [];
  if (options.signal !== undefined) signals.push(options.signal);
  if (options.unbounded !== true) signals.push(AbortSignal.timeout(transport.requestTimeoutMs));
  if (signals.length > 0) init.signal = signals.length === 1 ? signals[0]! : AbortSignal.any(signals);
  let response: Response;
  try {
    response = await transport.fetch(urlOf(transport, route, options.query), init);
  } catch (cause) {
    throw fromFailure(cause);
  }
  if (!response.ok) throw await fromResponse(response);
  return response;
}

/** Sends a request and reads its JSON answer. */
export async function sendForJson<T>(transport: Transport, route: string, options?: RequestOptions): Promise<T> {
  const response = await send(transport, route, options);
  try {
    return parseJson(await response.text()) as T;
  } catch (cause) {
    const failure = fromFailure(cause);
    if (!(cause instanceof SyntaxError)) throw failure;
    throw new HubmeshError({ code: "unexpected", status: response.status, title: "The answer is not JSON", cause });
  }
}
