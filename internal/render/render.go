package render

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"path"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Nodes reads nodes for whoever ctx carries.
type Nodes interface {
	Get(ctx context.Context, path node.Path) (node.Node, error)
}

// Renderer renders documents. It is safe for concurrent use.
type Renderer struct {
	nodes    Nodes
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
}

// New returns a renderer.
func New(nodes Nodes) *Renderer {
	return &Renderer{nodes: nodes, policy: policy(), markdown: goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithInlineParsers(util.Prioritized(mention{}, 150)),
			parser.WithASTTransformers(util.Prioritized(rewriter{}, 100))),
		goldmark.WithRendererOptions(ghtml.WithUnsafe()), // sanitised below
	)}
}

// Render returns the HTML of the node at a path, "" for a node without a document, and its version.
func (r *Renderer) Render(ctx context.Context, at node.Path) (string, int64, error) {
	n, err := r.nodes.Get(ctx, at)
	if err != nil {
		return "", 0, err
	}
	text := Document(n)
	if text == "" {
		return r.policy.Sanitize(n.PreRenderedHTML), n.Version, nil
	}
	out, err := r.RenderText(ctx, at, text)
	return out, n.Version, err
}

// RenderText renders Markdown as if it were the document of the node at a path.
func (r *Renderer) RenderText(_ context.Context, at node.Path, markdown string) (string, error) {
	pc := parser.NewContext()
	pc.Set(baseKey, at)
	var b bytes.Buffer
	if err := r.markdown.Convert([]byte(markdown), &b, parser.WithContext(pc)); err != nil {
		return "", fmt.Errorf("rendering '%s': %w", at, err)
	}
	return r.policy.Sanitize(b.String()), nil
}

// Document is the Markdown of a node: the member "markdown" of its content, or "text" or "body" of a
// content of type Markdown.
func Document(n node.Node) string {
	var c struct {
		Type     string `json:"$type"`
		Markdown string `json:"markdown"`
		Text     string `json:"text"`
		Body     string `json:"body"`
		Content  any    `json:"content"`
	}
	if n.Content.Decode(&c) != nil {
		return ""
	}
	if c.Markdown != "" {
		return c.Markdown
	}
	if c.Type != "Markdown" && c.Type != "MarkdownContent" && c.Type != "Article" && n.NodeType != node.TypeMarkdown {
		return ""
	}
	for _, s := range []string{c.Text, c.Body} {
		if s != "" {
			return s
		}
	}
	s, _ := c.Content.(string)
	return s
}

var baseKey = parser.NewContextKey()

// rewriter makes links and images of a document absolute.
type rewriter struct{}

func (rewriter) Transform(doc *ast.Document, _ text.Reader, pc parser.Context) {
	at, _ := pc.Get(baseKey).(node.Path)
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(link(at, string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(image(at, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

// link is where a link of a document leads. Relative ones are relative to the node, as to a folder; with
// the ending ".md" they name a file beside the document's own, as in the folder that it came from.
func link(at node.Path, dest string) string {
	dest = strings.TrimPrefix(dest, "@")
	if absolute(dest) || strings.HasPrefix(dest, "#") || strings.HasPrefix(dest, "/") || dest == "" {
		return dest
	}
	to, frag, hasFrag := strings.Cut(dest, "#")
	base := at
	if stem, ok := strings.CutSuffix(to, ".md"); ok {
		to = stem
		if at.Depth() > 1 {
			base = at.Parent()
		}
	}
	out := "/" + strings.TrimPrefix(path.Join("/", string(base), to), "/")
	if hasFrag {
		out += "#" + frag
	}
	return out
}

// image is where an image of a document comes from: relative ones from the content of its node.
func image(at node.Path, src string) string {
	if absolute(src) || strings.HasPrefix(src, "/") || src == "" {
		return src
	}
	return "/api/content/" + escapePath(strings.TrimPrefix(path.Join("/", string(at), src), "/"))
}

// absolute tells whether a destination has a scheme or a host of its own.
func absolute(dest string) bool {
	if strings.HasPrefix(dest, "//") {
		return true
	}
	colon := strings.IndexByte(dest, ':')
	return colon > 0 && !strings.ContainsAny(dest[:colon], "/?#")
}

func escapePath(p string) string {
	var b strings.Builder
	for i, seg := range strings.Split(p, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		b.Write(util.URLEscape([]byte(seg), true))
	}
	return b.String()
}

// mention is the inline form "@path", a link to a node, and "@@path", an embed: a file of the content is
// shown, a node is linked. It needs a path of two segments at least, so that "@name" stays text.
type mention struct{}

func (mention) Trigger() []byte { return []byte{'@'} }

func (mention) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if before := block.PrecendingCharacter(); before != '\n' && before != ' ' && before != '(' && before != '\t' && before != '|' {
		return nil
	}
	line, _ := block.PeekLine()
	marks := 1
	if len(line) > 1 && line[1] == '@' {
		marks = 2
	}
	end := marks
	for end < len(line) && !bytes.ContainsRune([]byte(" \t\r\n)\"'`|<>*"), rune(line[end])) {
		end++
	}
	target := strings.TrimRight(string(line[marks:end]), ".,;:!?")
	target = strings.TrimPrefix(target, "/")
	if !strings.Contains(target, "/") || strings.Contains(target, "@") {
		return nil
	}
	block.Advance(marks + len(strings.TrimRight(string(line[marks:end]), ".,;:!?")))
	at, _ := pc.Get(baseKey).(node.Path)
	if marks == 2 && isPicture(target) {
		l := ast.NewLink()
		if local, ok := strings.CutPrefix(target, "content/"); ok {
			l.Destination = []byte("content/" + local)
		} else {
			l.Destination = []byte("/api/content/" + escapePath(target))
		}
		img := ast.NewImage(l)
		img.AppendChild(img, ast.NewString([]byte(html.EscapeString(path.Base(target)))))
		return img
	}
	l := ast.NewLink()
	l.Destination = []byte("/" + escapePath(target))
	if at == "" {
		l.Destination = []byte(target)
	}
	l.AppendChild(l, ast.NewString([]byte(html.EscapeString(target))))
	return l
}

func isPicture(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif":
		return true
	}
	return false
}
