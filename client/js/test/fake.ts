import { Client } from "../src/client.ts";
import type { Json, MeshNode } from "../src/types.ts";

const encoder = new TextEncoder();

/** One accepted stream: what was asked for, and a way to send and to break it. */
export class FakeStream {
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly body = new ReadableStream<Uint8Array>({ start: (controller) => { this.controller = controller; } });
  aborted = false;
  readonly subs: string[];

  constructor(readonly url: URL, readonly headers: Headers, signal: AbortSignal | null | undefined) {
    this.subs = ["node", "children", "query"].flatMap((kind) => url.searchParams.getAll(kind).map((argument) => `${kind}:${argument}`));
    signal?.addEventListener("abort", () => { this.aborted = true; });
  }

  event(name: string, data: Json, id = ""): void {
    this.bytes(`event: ${name}\n${id === "" ? "" : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
  }

  bytes(text: string): void {
    if (!this.aborted) this.controller.enqueue(encoder.encode(text));
  }

  end(): void {
    if (!this.aborted) this.controller.close();
  }

  break(): void {
    if (!this.aborted) this.controller.error(new TypeError("connection reset"));
  }
}

/** A server made of a fetch function: streams are held by the test, nodes answered from a map. */
export class FakeServer {
  readonly streams: FakeStream[] = [];
  /** Milliseconds at which streams were asked for. */
  readonly asked: number[] = [];
  readonly nodes = new Map<string, MeshNode>();
  gets = 0;
  /** When set, streams are answered with this instead. */
  refusal: (() => Response | Promise<Response>) | undefined;

  readonly fetch = async (input: string, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input, "http://fake");
    if (url.pathname.startsWith("/api/nodes/")) {
      this.gets++;
      const node = this.nodes.get(decodeURIComponent(url.pathname.slice("/api/nodes/".length)));
      if (node === undefined) return problem(404, "not_found");
      return new Response(JSON.stringify(node));
    }
    this.asked.push(Date.now());
    if (this.refusal !== undefined) return this.refusal();
    const stream = new FakeStream(url, new Headers(init.headers), init.signal);
    this.streams.push(stream);
    return new Response(stream.body, { headers: { "content-type": "text/event-stream" } });
  };

  client(): Client {
    return new Client({ fetch: this.fetch });
  }

  get last(): FakeStream {
    return this.streams[this.streams.length - 1] as FakeStream;
  }
}

export function problem(status: number, code: string, retry = "never", headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ title: code, status, code, retry }), { status, headers: { "content-type": "application/problem+json", ...headers } });
}

export function nodeOf(path: string, version: number): MeshNode {
  return { path, id: path, name: `v${version}`, version };
}

export function fullOf(path: string, version: number): Json {
  return { version, node: nodeOf(path, version) as unknown as Json };
}
