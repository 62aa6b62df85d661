import type { Child, MeshNode } from "@hubmesh/client";
import { describe, expect, it } from "vitest";
import { activityView } from "../src/activity/activity.ts";
import { hrefOf, isPlace, placeOf } from "../src/app/place.ts";
import { idOf, idProblem, newFields } from "../src/node/create.ts";
import { columnsOf, urlOf } from "../src/node/DataView.tsx";
import { rank, searchFor, searchQueries, shown } from "../src/search/search.ts";
import { keyAction, rowsOf, listed, type Level } from "../src/tree/rows.ts";
import { iconOf } from "../src/ui/NodeIcon.tsx";
import { bytes, relativeTime } from "../src/ui/Time.tsx";
import { changesOf, lineChanges } from "../src/versions/changes.ts";

function node(path: string, rest: Partial<MeshNode> = {}): MeshNode {
  return { path, id: path.slice(path.lastIndexOf("/") + 1), version: 1, ...rest };
}

describe("a place", () => {
  it("survives the way into a URL and back", () => {
    const place = { path: "Northwind/Gai pâturage/a?b#c%", tab: "versions", at: 7, dir: "x/y", hash: "what is left" } as const;
    expect(placeOf(new URL(hrefOf(place), "http://h"))).toEqual(place);
  });

  it("is the view of a node unless the URL says more, whatever else it says", () => {
    expect(placeOf(new URL("http://h/a/b/?tab=nonsense&at=-1&x=1"))).toEqual({ path: "a/b", tab: "view", at: undefined, dir: "", hash: "" });
    expect(placeOf(new URL("http://h/%E0%A4%A")).path).toBe("%E0%A4%A");
  });

  it("is no route of the server and nothing on another origin", () => {
    const at = (url: string): boolean => isPlace(new URL(url), "http://h");
    expect(["http://h/", "http://h/apis/x", "http://h/a/api"].map(at)).toEqual([true, true, true]);
    expect(["http://h/api/content/a/b", "http://h/static/x.svg", "http://h/login?code=1", "http://other/a"].map(at)).toEqual([false, false, false, false]);
  });
});

describe("a text in a content", () => {
  it("leads to this server where it is a path, and nowhere where it is no URL or one elsewhere", () => {
    expect(["/a/b", "/a?x#y", "/api/content/a/b"].map((text) => urlOf(text, "http://h")?.pathname)).toEqual(["/a/b", "/a", "/api/content/a/b"]);
    expect(["/\\[", "//other/a", "/\\other/a", "/ a", "a/b", "/", ""].map((text) => urlOf(text, "http://h"))).toEqual(Array(7).fill(undefined));
  });
});

describe("the tree", () => {
  const child = (path: string, hasChildren = false, order?: number): Child => ({ path, id: path.slice(path.lastIndexOf("/") + 1), version: 1, hasChildren, ...(order === undefined ? {} : { order }) });
  const live = (...children: Child[]): Level => ({ status: "live", children, error: undefined });
  const levels: Record<string, Level> = {
    "": live(child("a", true), child("b"), child("c", true)),
    a: live(child("a/x"), child("a/y")),
    c: { status: "loading", children: [], error: undefined },
  };
  const rows = rowsOf(new Set(["a", "c"]), (path) => levels[path]);
  const act = (focused: string, key: string): string => {
    const action = keyAction(rows, focused, key);
    return action === undefined ? "nothing" : `${action.kind} ${action.path}`;
  };

  it("has a row for each node that is open to see, with its level and its place among its siblings", () => {
    expect(rows.map((row) => (row.kind === "node" ? `${row.level} ${row.path} ${row.position}/${row.setSize} ${row.expanded}` : `${row.level} ${row.note}`))).toEqual([
      "1 a 1/3 true", "2 a/x 1/2 undefined", "2 a/y 2/2 undefined", "1 b 2/3 undefined", "1 c 3/3 true", "2 loading",
    ]);
  });

  it("moves with the arrows, Home and End, opens with Right, closes with Left, goes with Enter", () => {
    expect(["ArrowDown", "ArrowRight", "ArrowLeft", "End"].map((key) => act("a", key))).toEqual(["focus a/x", "focus a/x", "collapse a", "focus c"]);
    expect(["ArrowUp", "ArrowLeft", "Home", "Enter"].map((key) => act("a/y", key))).toEqual(["focus a/x", "focus a", "focus a", "open a/y"]);
    expect(["ArrowUp"].map((key) => act("a", key))).toEqual(["nothing"]);
    expect(act("c", "ArrowRight")).toBe("nothing");
    expect(keyAction(rowsOf(new Set(), (path) => levels[path]), "a", "ArrowRight")).toEqual({ kind: "expand", path: "a" });
  });

  it("goes to the next row that begins with a letter, round the end", () => {
    expect([act("a", "b"), act("c", "a"), act("b", "B"), act("a", "Tab"), act("a", "q")]).toEqual(["focus b", "focus a", "focus b", "nothing", "nothing"]);
  });

  it("lists by order, then by name as people count, and leaves out what is the mesh's own", () => {
    const sorted = listed([child("_Content"), child("n10"), child("n9"), child("last", false, 2), child("first", false, 1), child("É"), child("f")]);
    expect(sorted.map((c) => c.id)).toEqual(["first", "last", "É", "f", "n9", "n10"]);
  });
});

describe("search", () => {
  it("asks for every word in the name, then anywhere, with nothing that the query language could misread", () => {
    expect(searchQueries("launch \"plan\\")).toEqual(["name:*launch* name:*plan* context:search limit:50", "\"launch\" \"plan\" context:search limit:50"]);
    expect(searchQueries("a(b) OR")[0]).toBe("name:*a* name:*b* name:*OR* context:search limit:50");
    expect(searchQueries("--")).toEqual(["\"--\" context:search limit:50"]);
    expect(searchQueries("  ")).toEqual([]);
  });

  it("puts the best name first", () => {
    const found = [node("x/relaunch", { name: "Relaunch" }), node("x/plan", { name: "Launch plan" }), node("launch", { name: "Launch" }), node("x/y", { name: "The launch" })];
    expect(rank(found, "launch").map((n) => n.name)).toEqual(["Launch", "Launch plan", "The launch", "Relaunch"]);
  });

  it("does not ask for the text when there are enough names, and shows each hit once", async () => {
    const asked: string[] = [];
    const many = Array.from({ length: shown }, (_, n) => node(`n${n}`));
    await searchFor("n", async (query) => {
      asked.push(query);
      return { nodes: many, truncated: false };
    });
    expect(asked.length).toBe(1);
    const { hits } = await searchFor("n", async () => ({ nodes: many.slice(0, 2), truncated: false }));
    expect(hits.length).toBe(2);
  });
});

describe("an activity", () => {
  it("shows its message and how far it is", () => {
    const content = { status: "Running", progress: { done: 1500, total: 6000, message: "Docs/a.md" } };
    expect(activityView(node("a/_Activity/1", { name: "Import", mainNode: "a", content }))).toEqual({ title: "Import", message: "Docs/a.md", counted: "1,500 of 6,000", fraction: 0.25, cancelling: false, subject: "a" });
  });

  it("shows the last line of its log, counts, or nothing, as it has them", () => {
    const message = (content: MeshNode["content"]): string => activityView(node("x", content === undefined ? {} : { content })).message;
    expect(message({ messages: [{ text: "one" }, { text: "two" }] })).toBe("two");
    expect(message({ messages: ["one", "two"] })).toBe("two");
    const counted = (content: MeshNode["content"]): string => activityView(node("x", { content: content ?? null })).counted;
    expect([counted({ done: 1200, total: 3000 }), counted({ done: 3 }), counted({ done: 0, total: 0 })]).toEqual(["1,200 of 3,000", "3 done", ""]);
    expect([message(undefined), message([1]), message({ progress: "soon" })]).toEqual(["", "", ""]);
    expect(activityView(node("x", { content: { requestedStatus: "Cancelled" } })).cancelling).toBe(true);
  });
});

describe("a new node", () => {
  it("gets an id from its name, in any language", () => {
    expect(["Press kit!", "  Gai pâturage & Co. ", "日本 語", "../.."].map(idOf)).toEqual(["Press-kit", "Gai-pâturage-Co", "日本-語", ""]);
  });

  it("is told what is wrong with its id", () => {
    expect([idProblem("ok"), idProblem("")]).toEqual([undefined, undefined]);
    expect([idProblem("a/b"), idProblem(".."), idProblem("a\\b")].every((problem) => problem !== undefined)).toBe(true);
  });

  it("has Markdown or JSON as its content", () => {
    expect(newFields({ name: " N ", nodeType: "Markdown", body: "# x" })).toEqual({ name: "N", nodeType: "Markdown", content: { $type: "Markdown", markdown: "# x" } });
    expect(newFields({ name: "", nodeType: "Task", body: "{\"a\":1}" })).toEqual({ nodeType: "Task", content: { a: 1 } });
    expect(newFields({ name: "", nodeType: "Task", body: " " })).toEqual({ nodeType: "Task" });
    expect(newFields({ name: "", nodeType: "", body: "[1]" })).toEqual({ content: [1] });
    expect(() => newFields({ name: "", nodeType: "Task", body: "{" })).toThrow(SyntaxError);
  });
});

describe("a comparison of versions", () => {
  it("shows changed lines with what is around them, and says what it leaves out", () => {
    const old = Array.from({ length: 20 }, (_, n) => `line ${n}\n`);
    const lines = lineChanges(old.join(""), old.map((line, n) => (n === 10 ? "new\n" : line)).join(""));
    expect(lines.map((line) => line.kind)).toEqual(["gap", "same", "same", "same", "removed", "added", "same", "same", "same", "gap"]);
    expect([lines[0]?.text, lines[9]?.text]).toEqual(["7 lines", "6 lines"]);
  });

  it("never repeats a line between two near changes", () => {
    const old = Array.from({ length: 12 }, (_, n) => `${n}\n`);
    for (let gap = 1; gap < 9; gap++) {
      const lines = lineChanges(old.join(""), old.map((line, n) => (n === 1 || n === 1 + gap ? `new ${n}\n` : line)).join(""));
      const kept = lines.filter((line) => line.kind === "same").map((line) => line.text);
      expect(kept, `gap ${gap}`).toEqual([...new Set(kept)]);
    }
  });

  it("compares a document as text and other content as JSON", () => {
    const document = (markdown: string): MeshNode => node("a", { content: { $type: "Markdown", markdown } });
    expect(changesOf(document("a\nb\n"), document("a\nc\n")).map((line) => `${line.kind} ${line.text}`)).toEqual(["head content", "same a", "removed b", "added c"]);
    expect(changesOf(node("a", { name: "x" }), node("a", { name: "y" })).map((line) => line.kind)).toEqual(["head", "removed", "added"]);
    expect(changesOf(document("a"), document("a"))).toEqual([]);
  });
});

describe("what is shown", () => {
  it("knows pictures, drawings in the colour of the text, signs, and names without a picture", () => {
    expect(iconOf("/api/content/A/icon.svg", "Space")).toEqual({ kind: "image", src: "/api/content/A/icon.svg" });
    expect(iconOf("/static/NodeTypeIcons/people.svg", "X").kind).toBe("mask");
    expect(iconOf("<svg stroke='currentColor'/>", "X").kind).toBe("mask");
    expect(iconOf("<svg fill='red'/>", "X").kind).toBe("image");
    expect(iconOf("🚀", "X")).toEqual({ kind: "text", text: "🚀" });
    expect(iconOf("Document", "ACME/Article")).toEqual({ kind: "glyph", name: "file" });
    expect(iconOf(undefined, undefined)).toEqual({ kind: "glyph", name: "folder" });
  });

  it("says times and sizes in words", () => {
    const now = Date.parse("2026-01-10T12:00:00Z");
    expect(["2026-01-10T11:59:55Z", "2026-01-10T11:57:00Z", "2026-01-09T12:00:00Z", "2025-01-01T00:00:00Z"].map((at) => relativeTime(Date.parse(at), now))).toEqual(["just now", "3 minutes ago", "yesterday", "last year"]);
    expect([12, 1500, 34_000_000].map(bytes)).toEqual(["12 B", "1.5 kB", "34 MB"]);
  });

  it("makes a table of objects that are alike, and of no others", () => {
    expect(columnsOf([{ a: 1 }, { a: 2, b: 3 }])).toEqual(["a", "b"]);
    expect(columnsOf([{ a: 1 }, 2])).toBeUndefined();
    expect(columnsOf([Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`k${n}`, n]))])).toBeUndefined();
  });
});
