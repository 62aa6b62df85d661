import { describe, expect, it } from "vitest";
import { parseJson, printJson, type MeshNode } from "@hubmesh/client";
import { int, pick, seeded } from "../../client/js/test/random.ts";
import { dirtyValues, edit, isDirty, newDraft, remoteArrived, saveAnswered, saveFailed, saveStarted, type Draft } from "../src/edit/draft.ts";
import { bodyText, changeOf } from "../src/edit/fields.ts";

function draft(text: string, version = 1): Draft {
  return newDraft(version, { text: { text }, name: { text: "n" } });
}
function text(d: Draft): string {
  return d.fields["text"]?.local ?? "";
}

describe("a draft", () => {
  it("takes a remote change of a field that is not dirty", () => {
    const d = remoteArrived(edit(draft("a\n"), "name", "mine"), { version: 2, values: { text: "b\n", name: "n" } });
    expect([text(d), dirtyValues(d)]).toEqual(["b\n", { name: "mine" }]);
  });

  it("merges a remote change into a field that is dirty", () => {
    const d = remoteArrived(edit(draft("a\nb\nc\n"), "text", "A\nb\nc\n"), { version: 2, values: { text: "a\nb\nC\n" } });
    expect([text(d), isDirty(d), d.version]).toEqual(["A\nb\nC\n", true, 2]);
  });

  it("skips what it knows already", () => {
    const d = edit(draft("a\n", 5), "text", "mine\n");
    expect(remoteArrived(d, { version: 5, values: { text: "old\n" } })).toBe(d);
  });

  it("is clean after its save, also when the echo comes before the answer", () => {
    let d = saveStarted(edit(draft("a\n"), "text", "b\n"), { text: "b\n" });
    d = remoteArrived(d, { version: 2, values: { text: "b\n", name: "n" } });
    d = saveAnswered(d, { version: 2, values: { text: "b\n", name: "n" } });
    expect([isDirty(d), d.version, text(d)]).toEqual([false, 2, "b\n"]);
  });

  it("keeps what was typed while it was saved", () => {
    let d = saveStarted(edit(draft("a\n"), "text", "ab\n"), { text: "ab\n" });
    d = edit(d, "text", "abc\n");
    d = saveAnswered(d, { version: 2, values: { text: "ab\n" } });
    expect(dirtyValues(d)).toEqual({ text: "abc\n" });
  });

  it("merges what was written in between when its save is refused as stale", () => {
    let d = saveStarted(edit(draft("one\ntwo\n"), "text", "ONE\ntwo\n"), { text: "ONE\ntwo\n" });
    d = remoteArrived(saveFailed(d), { version: 2, values: { text: "one\nTWO\n" } });
    expect([dirtyValues(d), d.version]).toEqual([{ text: "ONE\nTWO\n" }, 2]);
  });

  it("takes versions after its own, which arrived before the answer", () => {
    let d = saveStarted(edit(draft("a\n"), "text", "b\n"), { text: "b\n" });
    for (const [version, t] of [[2, "b\n"], [3, "b\nc\n"]] as const) d = remoteArrived(d, { version, values: { text: t } });
    d = saveAnswered(d, { version: 2, values: { text: "b\n" } });
    expect([text(d), isDirty(d), d.version]).toEqual(["b\nc\n", false, 3]);
  });

  it("stays dirty when its save fails, and merges what arrived meanwhile", () => {
    let d = saveStarted(edit(draft("a\nb\n"), "text", "A\nb\n"), { text: "A\nb\n" });
    d = saveFailed(remoteArrived(d, { version: 2, values: { text: "a\nB\n" } }));
    expect(dirtyValues(d)).toEqual({ text: "A\nB\n" });
  });

  it("does not count formatting where the field says so", () => {
    const same = (a: string, b: string): boolean => JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
    let d = newDraft(1, { json: { text: "{\"a\":1}", same } });
    d = edit(d, "json", "{ \"a\": 1 }");
    expect(isDirty(d)).toBe(false);
    d = remoteArrived(d, { version: 2, values: { json: "{\"a\": 1}" } });
    expect(d.fields["json"]?.local).toBe("{ \"a\": 1 }");
  });

  it("counts where another's change gave way", () => {
    expect(remoteArrived(edit(draft("x\n"), "text", "mine\n"), { version: 2, values: { text: "theirs\n" } }).conflicts).toBe(1);
  });
});

describe("several editors of one text", () => {
  // Each adds lines of its own to the same text, with frames and answers that arrive late or put
  // together; nothing that anyone added may be missing in the end, on any screen.
  it("end with the same text, and no added line is lost", () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = seeded(seed);
      const history = ["", "base 0\nbase 1\nbase 2\n"];
      const server = (): number => history.length - 1;
      const at = (version: number) => ({ version, values: { text: history[version] as string } });
      const editors = Array.from({ length: 3 }, (_, n) => ({ n, d: draft(history[1] as string), seen: 1, answer: 0, added: [] as string[] }));
      type Editor = (typeof editors)[number];
      const send = (e: Editor): void => {
        const values = dirtyValues(e.d);
        if (e.d.saving !== undefined || values["text"] === undefined) return;
        e.answer = e.d.version === server() ? history.push(values["text"]) - 1 : 0; // 0 is stale
        e.d = saveStarted(e.d, values);
      };
      const answer = (e: Editor): void => {
        if (e.d.saving === undefined) return;
        e.d = e.answer > 0 ? saveAnswered(e.d, at(e.answer)) : remoteArrived(saveFailed(e.d), at(server()));
      };
      const receive = (e: Editor): void => {
        if (e.seen >= server()) return;
        e.seen = random() < 0.7 ? e.seen + 1 : server();
        e.d = remoteArrived(e.d, at(e.seen));
      };
      const type = (e: Editor): void => {
        const all = text(e.d).split(/(?<=\n)/);
        const line = `${"xyz"[e.n]}${e.added.length}\n`;
        e.added.push(line);
        all.splice(int(random, all.length + 1), 0, line);
        e.d = edit(e.d, "text", all.join(""));
      };
      for (let n = 0; n < 60; n++) pick(random, [type, send, send, answer, answer, receive, receive])(pick(random, editors));
      for (let round = 0; round < 30; round++) for (const e of editors) for (const act of [answer, receive, send]) act(e);
      const final = history[server()] as string;
      for (const e of editors) {
        expect(text(e.d), `seed ${seed}: editor ${e.n} shows the server's text`).toBe(final);
        for (const line of e.added) expect(final, `seed ${seed}`).toContain(line);
      }
    }
  });
});

describe("an edit of JSON", () => {
  it("leaves the numbers that nobody edited as they are written", () => {
    const content = parseJson("{\"list\":[{\"id\":12345678901234567890,\"v\":1}]}");
    const node: MeshNode = { path: "a/b", id: "b", version: 1, content };
    const shown = bodyText(node, { kind: "json" });
    expect(shown).toContain("12345678901234567890");
    const change = changeOf(node, { kind: "json" }, { body: shown.replace("\"v\": 1", "\"v\": 2") });
    expect(printJson(change.patch)).toBe("{\"content\":{\"list\":[{\"id\":12345678901234567890,\"v\":2}]}}");
  });
});
