package render

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

type one node.Node

func (o one) Get(context.Context, node.Path) (node.Node, error) { return node.Node(o), nil }

func rendered(t *testing.T, at node.Path, md string) string {
	t.Helper()
	out, err := New(one{}).RenderText(t.Context(), at, md)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// edge §4
func TestADocumentIsRenderedWithTablesCodeLinksAndImages(t *testing.T) {
	out := rendered(t, "acme/Docs/page", strings.Join([]string{
		"# Title", "", "| a | b |", "|---|---|", "| 1 | 2 |", "", "```go", "x := 1", "```", "",
		"[file beside](other.md#part) [below](part/one) [beside](../Top) [abs](/x/y) ![pic](images/a b.png) ![pic](<images/a b.png>) @acme/Docs/third. and @name and a@b/c",
		"", "@@content/draw.svg", "", `@@("acme/Docs/view")`, "", "- [x] done",
	}, "\n"))
	for _, want := range []string{
		"<table>", "<td>2</td>", `class="language-go"`, `href="/acme/Docs/other#part"`, `href="/acme/Docs/page/part/one"`, `href="/acme/Docs/Top"`, `href="/x/y"`,
		`src="/api/content/acme/Docs/page/images/a%20b.png"`, `href="/acme/Docs/third"`, "and @name", "a@b/c", `src="/api/content/acme/Docs/page/content/draw.svg"`, `id="title"`, `href="/acme/Docs/view"`, "checkbox",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %s\n%s", want, out)
		}
	}
}

// edge §4
// The description of an image is any text, escaped: readers who do not see the image have nothing else.
func TestADescriptionOfAnImageIsKeptWhateverItSays(t *testing.T) {
	out := rendered(t, "acme/x", "![Figure 1: a => b — \"c\" < d](a.png \"Title: x = y\")")
	for _, want := range []string{`alt="Figure 1: a =&gt; b — &#34;c&#34; &lt; d"`, `title="Title: x = y"`} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %s\n%s", want, out)
		}
	}
}

// edge §4
func TestWhatRunsLoadsOrCoversThePageIsTakenOut(t *testing.T) {
	out := rendered(t, "acme/x", strings.Join([]string{
		`<script>alert(1)</script>`, "", `<img src=x onerror="alert(1)">`, "", `<a href="javascript:alert(1)">x</a>`, "",
		`<svg onload="alert(1)"><script>alert(1)</script><foreignObject><body onload=alert(1)></foreignObject><a href="javascript:alert(1)"><text>t</text></a><rect width="1" fill="url(http://evil.example/x)"/></svg>`, "",
		`<div style="position:fixed;top:0;background:url(//evil.example/x);color:red">d</div>`, "", `<iframe src="//evil.example"></iframe><form action="/x"><input name=a></form>`, "",
		`<style>*{display:none}</style>`, "", `[x](javascript:alert(1)) [y](data:text/html,x)`,
	}, "\n"))
	for _, bad := range []string{"<script", "onerror", "onload", "javascript:", "foreignobject", "evil.example", "position", "<iframe", "<form", "<style", "data:text"} {
		if strings.Contains(strings.ToLower(out), bad) {
			t.Errorf("keeps %s\n%s", bad, out)
		}
	}
	if !strings.Contains(out, "color: red") {
		t.Errorf("harmless style is lost\n%s", out)
	}
}

// edge §4
func TestADrawingStaysADrawing(t *testing.T) {
	out := rendered(t, "acme/x", `<svg viewBox="0 0 10 10" xmlns="http://www.w3.org/2000/svg"><defs><marker id="a" markerWidth="3" orient="auto"><path d="M0 0L1 1Z"/></marker></defs><line x1="0" y1="0" x2="5" y2="5" stroke="#333" marker-end="url(#a)"/><text x="1" y="2" font-size="12" text-anchor="middle">hi</text></svg>`)
	for _, want := range []string{"<svg", `viewbox="0 0 10 10"`, "<marker", `d="M0 0L1 1Z"`, `marker-end="url(#a)"`, "<text", "hi</text>"} {
		if !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
			t.Errorf("lacks %s\n%s", want, out)
		}
	}
}

func FuzzRenderedDocumentsNeverRun(f *testing.F) {
	for _, s := range []string{"# a", "<svg onload=x>", "[a](javascript:b)", "@@a/b.svg", "|a|\n|-|\n", "<a href='  javascript:x'>"} {
		f.Add(s)
	}
	r := New(one{})
	f.Fuzz(func(t *testing.T, md string) {
		out, err := r.RenderText(context.Background(), "acme/x", md)
		if err != nil {
			t.Fatal(err)
		}
		if again := r.policy.Sanitize(out); strings.Contains(strings.ToLower(again), "<script") {
			t.Fatalf("%q → %q", md, out)
		}
	})
}

// edge §4
func TestEveryDocumentOfTheGuideRenders(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	if out := rendered(t, "Guide/api", string(text)); !strings.Contains(out, "<table>") {
		t.Fatal("no table")
	}
}

// edge §4: HTML that was rendered elsewhere is as untrusted as a document, and what a node is called does
// not come into it.
func TestWhatANodeBringsRenderedIsSanitisedToo(t *testing.T) {
	n := one{Name: "<script>alert(1)</script>", Icon: "javascript:alert(1)", PreRenderedHTML: `<p onclick="x">a</p><script>alert(1)</script><a href="javascript:x">b</a>`}
	out, _, err := New(n).Render(t.Context(), "acme/x")
	if err != nil || !strings.Contains(out, "<p>a</p>") || strings.Contains(out, "alert") || strings.Contains(out, "javascript") || strings.Contains(out, "onclick") {
		t.Errorf("%q %v", out, err)
	}
	n.PreRenderedHTML, n.Content = "", node.RawContent(`{"markdown":"![i](javascript:x) [j](JaVaScript:x) <javascript:x>"}`)
	if out, _, err := New(n).Render(t.Context(), "acme/x"); err != nil || strings.Contains(out, `="javascript`) || strings.Contains(strings.ToLower(out), `="javascript`) || strings.Contains(out, "alert") {
		t.Errorf("%q %v", out, err)
	}
}
