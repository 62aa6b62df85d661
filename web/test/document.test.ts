// @vitest-environment happy-dom
import { afterEach, describe, expect, it } from "vitest";
import { Blocks } from "../src/document/blocks.ts";
import { contrast, firstColor, textOn } from "../src/document/contrast.ts";
import { enhance, prepareImages, slug } from "../src/document/enhance.ts";
import { highlight } from "../src/document/highlight.ts";
import { resolveImage, resolveLink } from "../src/document/links.ts";

afterEach(() => document.body.replaceChildren());

function container(): HTMLElement {
  const element = document.createElement("div");
  document.body.append(element);
  return element;
}

function block(html: string): HTMLElement {
  const element = container();
  element.innerHTML = html;
  enhance(element, "Doc/Guide");
  return element;
}

describe("a link in a document", () => {
  it("starts from the node as a folder, and from its siblings where it names a Markdown file", () => {
    const cases: [string, string][] = [
      ["Details", "/Doc/Guide/Details"],
      ["../Other#part two", "/Doc/Other#part%20two"],
      ["./a/../b", "/Doc/Guide/b"],
      ["errors.md#stale", "/Doc/errors#stale"],
      ["../../../up", "/up"],
      ["Gai%20p%C3%A2turage", "/Doc/Guide/Gai%20p%C3%A2turage"],
    ];
    for (const [href, target] of cases) expect(resolveLink("Doc/Guide", href), href).toBe(target);
  });

  it("stays as it is with a scheme, from the root, or inside the page", () => {
    for (const href of ["https://example.org/", "mailto:a@b", "/Doc/x", "//host/x", "#part", ""]) expect(resolveLink("Doc/Guide", href), href).toBeUndefined();
  });

  it("that leaves the page opens beside it and tells the other side nothing", () => {
    const [out, inside, file] = [...block("<a href='https://example.org/'>o</a><a href='Details'>i</a><a href='/api/content/Doc/a.pdf'>f</a>").querySelectorAll("a")];
    expect([out?.target, out?.rel]).toEqual(["_blank", "noopener noreferrer"]);
    expect([inside?.getAttribute("href"), inside?.target]).toEqual(["/Doc/Guide/Details", ""]);
    expect(file?.target).toBe("_blank");
  });
});

describe("an image in a document", () => {
  it("comes from the node's files", () => {
    expect(resolveImage("Doc/Guide", "images/a b.svg")).toBe("/api/content/Doc/Guide/images/a%20b.svg");
    expect(resolveImage("Doc/Guide", "../logo.png")).toBe("/api/content/Doc/logo.png");
    for (const src of ["data:image/png;base64,x", "/api/content/x.png", "https://h/x.png"]) expect(resolveImage("Doc/Guide", src)).toBeUndefined();
  });

  it("has its address before it is in the page", () => {
    const root = container();
    new Blocks(root).show("<p><img src='x.png'></p>", (fragment) => {
      prepareImages(fragment, "Doc/Guide");
      expect(fragment.querySelector("img")?.getAttribute("src")).toBe("/api/content/Doc/Guide/x.png");
      expect(root.childNodes.length).toBe(0);
    });
    expect(root.querySelector("img")?.getAttribute("loading")).toBe("lazy");
  });

  it("that can not be loaded says so", () => {
    const element = block("<p><img src='x.png' alt='A plan'></p>");
    element.querySelector("img")?.dispatchEvent(new Event("error"));
    expect(element.textContent).toBe("Image not available: A plan");
  });
});

describe("blocks of a document", () => {
  it("stay the same elements where they did not change", () => {
    const root = container();
    const blocks = new Blocks(root);
    blocks.show("<p>one</p>\n<p>two</p>\n<p>three</p>");
    const [one, , three] = [...root.children];
    const fresh = blocks.show("<p>one</p><p>TWO</p><p>and</p><p>three</p>");
    expect(fresh.map((element) => element.textContent)).toEqual(["TWO", "and"]);
    expect([root.children[0], root.children[3]]).toEqual([one, three]);
    expect([...root.children].map((element) => element.textContent)).toEqual(["one", "TWO", "and", "three"]);
    blocks.show("");
    expect(root.childNodes.length).toBe(0);
  });

  it("stay the same also after they were dressed", () => {
    const root = container();
    const blocks = new Blocks(root);
    const html = "<h2>Title</h2><pre><code class=\"language-go\">func x() {}</code></pre><table><tbody><tr><td>1</td></tr></tbody></table>";
    for (const element of blocks.show(html)) enhance(element, "a");
    expect(blocks.show(html)).toEqual([]);
    expect(root.children.length).toBe(3);
  });
});

describe("a dressed document", () => {
  it("has anchors for headings, a scroller for tables, and a copy button and colours for code", () => {
    const element = block("<h2>What is left?</h2><p>x</p><div><table></table></div><pre><code class='language-go'>return 1</code></pre>");
    expect(element.querySelector("h2")?.id).toBe("what-is-left");
    expect(element.querySelector("h2 a.anchor")?.getAttribute("href")).toBe("#what-is-left");
    expect(element.querySelector(".table-scroll > table")).not.toBeNull();
    expect(element.querySelector("pre .hl-keyword")?.textContent).toBe("return");
    expect(element.querySelector("pre button")?.textContent).toBe("Copy");
  });

  it("leaves code alone that the server has coloured", () => {
    expect(block("<pre><code class='language-go'><span class='k'>return</span> 1</code></pre>").querySelector(".hl-keyword")).toBeNull();
  });

  it("makes anchors of any language", () => {
    expect(["Was übrig ist", "日本 語", "a.b/c!"].map(slug)).toEqual(["was-übrig-ist", "日本-語", "abc"]);
  });
});

describe("coloured code", () => {
  const kinds = (code: string, language: string): string[] => (highlight(code, language) ?? []).filter((piece) => piece.kind !== undefined).map((piece) => `${piece.kind}:${piece.text}`);

  it("tells comments, strings, numbers and keywords apart", () => {
    expect(kinds("// a \"b\"\nif x == 0x1F { s := \"if // no\" }", "go")).toEqual(["comment:// a \"b\"", "keyword:if", "number:0x1F", "string:\"if // no\""]);
    expect(kinds("SELECT 'it''s' -- x", "sql")).toEqual(["keyword:SELECT", "string:'it''s'", "comment:-- x"]);
    expect(kinds("{\"a\": \"b\", \"c\": true}", "json")).toEqual(["name:\"a\"", "string:\"b\"", "name:\"c\"", "keyword:true"]);
    expect(kinds("# x\ncurl --fail $URL", "bash")).toEqual(["comment:# x", "name:--fail", "name:$URL"]);
  });

  it("joins to the code again, for any language that is known, and is nothing for others", () => {
    const code = "a 'b \"c` # // /* -- <!-- <x y=\"1\"> @\"z\"\" $\"q\" \\ é 😀\n\t1.5e3 - k: v\n";
    for (const language of ["go", "CSharp", "bash", "sql", "json", "yaml", "xml", "python"]) {
      expect((highlight(code, language) ?? []).map((piece) => piece.text).join(""), language).toBe(code);
    }
    expect([highlight(code, "mermaid"), highlight(code, "")]).toEqual([undefined, undefined]);
  });

  it("of hostile text takes no time", () => {
    for (const piece of ["\"\\", "/*", "'", "<!--", "a.a.", "-- ", "1_", "\"\"\""]) {
      const started = performance.now();
      for (const language of ["go", "sql", "json", "yaml", "xml", "bash"]) highlight(piece.repeat(20_000 / piece.length), language);
      expect(performance.now() - started, piece).toBeLessThan(2_000);
    }
  });
});

describe("contrast", () => {
  it("reads the colours that browsers compute", () => {
    expect(firstColor("rgba(1, 2, 3, 0.5)")).toEqual([1, 2, 3, 0.5]);
    expect(firstColor("linear-gradient(135deg, rgb(13, 71, 161) 0%, rgb(25, 118, 210) 100%)")).toEqual([13, 71, 161, 1]);
    expect(firstColor("color(srgb 1 0 0.5 / 50%)")).toEqual([255, 0, 127.5, 0.5]);
    expect(firstColor("none")).toBeUndefined();
  });

  it("is measured as the guidelines say, and picks the text that is read best", () => {
    expect(contrast([0, 0, 0, 1], [255, 255, 255, 1])).toBeCloseTo(21);
    expect([textOn([255, 248, 225, 1]), textOn([13, 71, 161, 1])]).toEqual(["#1b1f24", "#ffffff"]);
  });
});
