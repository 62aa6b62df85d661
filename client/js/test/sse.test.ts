import { describe, expect, it } from "vitest";
import { SseParser, type SseEvent } from "../src/sse.ts";
import { int, pick, seeded } from "./random.ts";

const encoder = new TextEncoder();

function parse(...chunks: (string | Uint8Array)[]): SseEvent[] {
  const parser = new SseParser();
  return chunks.flatMap((chunk) => parser.push(typeof chunk === "string" ? encoder.encode(chunk) : chunk));
}

describe("the event stream parser", () => {
  it("reads name, data and id of an event", () => {
    expect(parse("event: full\nid: 7\ndata: {\"a\":1}\n\n")).toEqual([{ event: "full", id: "7", data: "{\"a\":1}" }]);
  });

  it("joins data lines, keeps all but one leading space, and names an event without a name message", () => {
    expect(parse("data:a\ndata:  b\ndata\n\n")).toEqual([{ event: "message", id: "", data: "a\n b\n" }]);
  });

  it("skips comments, fields that it does not know, and events without data", () => {
    expect(parse(": heartbeat\n\nevent: x\n\nfoo: bar\ndata: 1\n\n")).toEqual([{ event: "message", id: "", data: "1" }]);
  });

  it("keeps the last id, and refuses one with NUL", () => {
    expect(parse("id: 3\ndata: a\n\nid: 4\0\ndata: b\n\n").map((e) => e.id)).toEqual(["3", "3"]);
  });

  it("takes CR, LF and CRLF, also split between two chunks", () => {
    expect(parse("data: a\r", "\ndata: b\r", "\r", "data: c\n\n").map((e) => e.data)).toEqual(["a\nb", "c"]);
  });

  it("strips a byte order mark and drops an event that is not complete", () => {
    expect(parse("\uFEFFdata: a\n\ndata: lost\n").map((e) => e.data)).toEqual(["a"]);
  });

  it("reads the retry time, digits only", () => {
    const parser = new SseParser();
    parser.push(encoder.encode("retry: 250\nretry: 1s\n\n"));
    expect(parser.retryMs).toBe(250);
  });

  it("gives every event of a random stream whatever the line ends and wherever the chunks are cut", () => {
    for (let seed = 1; seed <= 400; seed++) {
      const random = seeded(seed);
      const { text, events } = randomStream(random);
      expect(parse(...cut(random, encoder.encode(text))), `seed ${seed}`).toEqual(events);
    }
  });

  it("gives the same for random bytes in one piece and in many, and never throws", () => {
    const alphabet = [..."\r\n\r\n: dataeventid\0é😀{}"].map((c) => encoder.encode(c));
    for (let seed = 1; seed <= 400; seed++) {
      const random = seeded(seed);
      const parts = Array.from({ length: int(random, 300) }, () => (random() < 0.05 ? Uint8Array.of(int(random, 256)) : pick(random, alphabet)));
      const bytes = Uint8Array.from(parts.flatMap((part) => [...part]));
      expect(parse(...cut(random, bytes)), `seed ${seed}`).toEqual(parse(bytes));
    }
  });
});

function randomStream(random: () => number): { text: string; events: SseEvent[] } {
  const words = ["", "a", "zwei", "é", "😀", "{\"a\": [1]}", " lead", "x:y", "データ"];
  const events: SseEvent[] = [];
  let text = random() < 0.2 ? "\uFEFF" : "";
  let lastId = "";
  const line = (s: string): void => {
    text += s + pick(random, ["\n", "\r", "\r\n"]);
  };
  // A lone CR before a line that starts with LF would read as one line end: an empty line follows as CRLF then.
  const blank = (): void => {
    text += text.endsWith("\r") ? "\r\n" : pick(random, ["\n", "\r\n"]);
  };
  for (let n = int(random, 8); n > 0; n--) {
    if (random() < 0.3) line(`: ${pick(random, words)}`);
    const name = pick(random, ["", "full", "patch"]);
    if (name !== "") line(`event: ${name}`);
    if (random() < 0.5) {
      lastId = String(int(random, 1000));
      line(`id:${lastId}`);
    }
    const data = Array.from({ length: int(random, 4) }, () => pick(random, words));
    for (const d of data) line(`data: ${d}`);
    blank();
    if (data.length > 0) events.push({ event: name === "" ? "message" : name, data: data.join("\n"), id: lastId });
  }
  return { text, events };
}

function cut(random: () => number, bytes: Uint8Array): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = 1 + int(random, random() < 0.5 ? 3 : 40);
    chunks.push(bytes.slice(at, at + size));
    at += size;
  }
  return chunks;
}
