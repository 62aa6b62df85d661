package render

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newParser is goldmark's parser of CommonMark with GFM, footnotes and definition lists. Its parts that
// can be made to look at the same text again and again are metered; the numbers are goldmark's own
// priorities.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(nested{inside{extension.NewDefinitionListParser()}}, 101),
			util.Prioritized(inside{extension.NewDefinitionDescriptionParser()}, 102),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(nested{inside{parser.NewListParser()}}, 300),
			util.Prioritized(inside{parser.NewListItemParser()}, 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(nested{inside{parser.NewBlockquoteParser()}}, 800),
			util.Prioritized(parser.NewHTMLBlockParser(), 900),
			util.Prioritized(notes{nested{inside{extension.NewFootnoteBlockParser()}}}, 999),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(searching{parser.NewCodeSpanParser()}, 100),
			util.Prioritized(noteLinks{extension.NewFootnoteParser()}, 101),
			util.Prioritized(mention{}, 150),
			util.Prioritized(links{parser.NewLinkParser()}, 200),
			util.Prioritized(searching{parser.NewAutoLinkParser()}, 300),
			util.Prioritized(searching{parser.NewRawHTMLParser()}, 400),
			util.Prioritized(emphases{parser.NewEmphasisParser()}, 500),
			util.Prioritized(emphases{extension.NewStrikethroughParser()}, 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(
			util.Prioritized(references{parser.LinkReferenceParagraphTransformer}, 100),
			util.Prioritized(tables{extension.NewTableParagraphTransformer()}, 200),
		),
		parser.WithASTTransformers(
			util.Prioritized(extension.NewTableASTTransformer(), 0),
			util.Prioritized(rewriter{}, 100),
			util.Prioritized(extension.NewFootnoteASTTransformer(), 999),
		),
		parser.WithAutoHeadingID(),
	)
}

// What work costs, in bytes that one fast search looks at.
const (
	stepWork = 16 // one step along a list
	scanWork = 4  // one byte of a destination
)

var meterKey = parser.NewContextKey()

func meterOf(pc parser.Context) *meter { return pc.Get(meterKey).(*meter) }

// rest is how many bytes of the block are left from here: what a search for a closing mark may look at.
func rest(parent ast.Node, block text.Reader) int {
	_, at := block.Position()
	lines := parent.Lines()
	if lines == nil || lines.Len() == 0 {
		return 1
	}
	return max(1, lines.At(lines.Len()-1).Stop-at.Start)
}

// inside is a block that holds blocks: each line asks all that are open, and each of them measures its
// place in the line anew. An item of a list is no more than that: a list without items can not be.
type inside struct{ parser.BlockParser }

func (p inside) Continue(n ast.Node, reader text.Reader, pc parser.Context) parser.State {
	meterOf(pc).add(1)
	return p.BlockParser.Continue(n, reader, pc)
}

// nested is one of them that opens in a bounded number of others only.
type nested struct{ inside }

func (p nested) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	meterOf(pc).add(1)
	if len(pc.OpenedBlocks()) >= maxNesting {
		return nil, parser.NoChildren
	}
	return p.inside.Open(parent, reader, pc)
}

// notes counts the footnotes that are defined.
type notes struct{ nested }

func (p notes) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	n, state := p.nested.Open(parent, reader, pc)
	if n != nil {
		meterOf(pc).notes++
	}
	return n, state
}

// noteLinks are links to footnotes: each goes through all that are defined.
type noteLinks struct{ parser.InlineParser }

func (p noteLinks) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	m := meterOf(pc)
	m.add(1)
	n := p.InlineParser.Parse(parent, block, pc)
	if n != nil {
		m.add(stepWork * m.notes)
	}
	return n
}

// searching is an inline that looks for its end, up to that of the block.
type searching struct{ parser.InlineParser }

func (p searching) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	m := meterOf(pc)
	left := rest(parent, block)
	n := p.InlineParser.Parse(parent, block, pc)
	if _, failed := n.(*ast.Text); n == nil || failed {
		m.add(left)
	} else {
		m.add(1)
	}
	return n
}

// links look for the end of a destination, up to that of the line.
type links struct{ parser.InlineParser }

func (p links) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	m := meterOf(pc)
	line, _ := block.PeekLine()
	searches := len(line) > 1 && line[0] == ']' && line[1] == '('
	n := p.InlineParser.Parse(parent, block, pc)
	if n == nil && searches {
		m.add(scanWork * destination(line[2:]))
	} else {
		m.add(1)
	}
	return n
}

// destination is how much of a line is looked at for a destination.
func destination(line []byte) int {
	line = bytes.TrimLeft(line, " \t")
	if bytes.HasPrefix(line, []byte("<")) {
		return len(line)
	}
	if end := bytes.IndexAny(line, " \t\r\n"); end >= 0 {
		return end + 1
	}
	return len(line) + 1
}

// CloseBlock ends what is open at the end of a block.
func (p links) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	p.InlineParser.(parser.CloseBlocker).CloseBlock(parent, block, pc)
}

// emphases are pairs of delimiters: each that may close goes back through those before it.
type emphases struct{ parser.InlineParser }

func (p emphases) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	m := meterOf(pc)
	m.add(1)
	n := p.InlineParser.Parse(parent, block, pc)
	d, ok := n.(*parser.Delimiter)
	if !ok {
		return n
	}
	// One that neither opens nor closes is passed by without a word; made to open nothing, it is counted.
	neutral := !d.CanOpen && !d.CanClose
	d.CanOpen = d.CanOpen || neutral
	d.Processor = &pairing{DelimiterProcessor: d.Processor, meter: m, neutral: neutral}
	return d
}

// pairing counts the delimiters that are passed on the way back from one that may close.
type pairing struct {
	parser.DelimiterProcessor
	meter   *meter
	neutral bool
}

func (p *pairing) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	// Those in between that can not open were passed without a call; each has a byte at least.
	passed := 1
	for d := opener.NextDelimiter; d != nil && d != closer && !d.CanOpen; d = d.NextDelimiter {
		passed++
	}
	p.meter.add(stepWork * passed)
	return !p.neutral && p.DelimiterProcessor.CanOpenCloser(opener, closer)
}

// references are the definitions of links at the start of a paragraph: each copies the lines after it.
type references struct{ parser.ParagraphTransformer }

func (p references) Transform(n *ast.Paragraph, reader text.Reader, pc parser.Context) {
	m := meterOf(pc)
	if lines := n.Lines(); lines.Len() > 0 {
		first := lines.At(0)
		if v := bytes.TrimLeft(first.Value(reader.Source()), " "); len(v) > 0 && v[0] == '[' {
			m.add(lines.Len() * lines.Len())
		}
	}
	p.ParagraphTransformer.Transform(n, reader, pc)
}

// tables fill short rows up, so that two long lines and many short ones are very many cells.
type tables struct{ parser.ParagraphTransformer }

func (p tables) Transform(n *ast.Paragraph, reader text.Reader, pc parser.Context) {
	m := meterOf(pc)
	lines := n.Lines()
	columns := 0
	for i := range lines.Len() {
		line := lines.At(i)
		text := line.Value(reader.Source())
		m.add(1)
		if i > 0 && columns == 0 && len(bytes.Trim(text, "|:- \t\r\n")) == 0 {
			columns = bytes.Count(text, []byte{'|'}) + 1
		}
		if columns > 0 {
			m.cells += columns
			if bytes.IndexByte(text, '`') >= 0 {
				m.pipes += bytes.Count(text, []byte(`\|`))
			}
		}
	}
	if m.cells > maxCells {
		panic(stop{&TooLargeError{"its tables have too many cells; divide them"}})
	}
	m.add(2 * m.pipes * m.pipes)
	p.ParagraphTransformer.Transform(n, reader, pc)
}
