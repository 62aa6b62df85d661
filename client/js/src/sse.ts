import { HubmeshError } from "./errors.ts";

/** One server-sent event. */
export interface SseEvent {
  event: string;
  data: string;
  /** The last event id of the stream at this event; "" when none was sent. */
  id: string;
}

/** An event larger than this many characters is refused: a node is at most 1 MiB, a result has up to some hundred. */
export const maxEventChars = 64 * 1024 * 1024;

/**
 * Parses the bytes of an event stream (HTML standard, section 9.2.6), in chunks of any size. An event
 * that is not complete at the end of the stream is dropped, as the standard says. Not reusable after
 * an error.
 */
export class SseParser {
  // The decoder strips a leading byte order mark and holds back a character that is not complete.
  private readonly decoder = new TextDecoder("utf-8");
  private rest = "";
  // How much of rest is known to hold no line end, so that a long line is looked through once.
  private scanned = 0;
  private afterCr = false;
  private event = "";
  private data: string[] = [];
  private dataChars = 0;
  private lastId = "";
  /** Milliseconds that the server asks to wait before a reconnect; undefined until it does. */
  retryMs: number | undefined;

  /** Takes the next bytes and returns the events that they complete. */
  push(chunk: Uint8Array): SseEvent[] {
    const events: SseEvent[] = [];
    let text = this.decoder.decode(chunk, { stream: true });
    if (this.afterCr && text !== "") {
      if (text.startsWith("\n")) text = text.slice(1);
      this.afterCr = false;
    }
    this.rest += text;
    let start = 0;
    for (;;) {
      const end = nextLineEnd(this.rest, Math.max(start, this.scanned));
      if (end < 0) break;
      const line = this.rest.slice(start, end);
      start = end + 1;
      this.scanned = start;
      if (this.rest[end] === "\r") {
        if (start === this.rest.length) this.afterCr = true;
        else if (this.rest[start] === "\n") start++;
      }
      const event = this.line(line);
      if (event !== undefined) events.push(event);
    }
    this.rest = this.rest.slice(start);
    this.scanned = this.rest.length;
    if (this.rest.length + this.dataChars > maxEventChars) {
      throw new HubmeshError({ code: "unexpected", retry: "after", title: "An event of the stream is too large" });
    }
    return events;
  }

  private line(line: string): SseEvent | undefined {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined; // a comment, such as the heartbeat
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "event") this.event = value;
    else if (field === "data") {
      this.data.push(value);
      this.dataChars += value.length + 1;
    } else if (field === "id") {
      if (!value.includes("\0")) this.lastId = value;
    } else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  private dispatch(): SseEvent | undefined {
    const event = this.event;
    const data = this.data;
    this.event = "";
    this.data = [];
    this.dataChars = 0;
    if (data.length === 0) return undefined;
    return { event: event === "" ? "message" : event, data: data.join("\n"), id: this.lastId };
  }
}

function nextLineEnd(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 10 || code === 13) return i;
  }
  return -1;
}
