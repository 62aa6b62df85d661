package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/activity"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// format is part of every fingerprint: raising it imports everything anew.
const format = "2"

// maxFiles bounds the files of one import.
const maxFiles = 1_000_000

// plan is one import: its files by the node they give, and what it has to say about the others.
type plan struct {
	s      *Service
	r      Request
	items  []item
	notes  []note               // said when the activity runs
	seen   int                  // what was considered: node files and others, and folders that can not be read
	made   map[node.Path]string // spaces that were made from their own file, with its fingerprint
	owners map[string]node.Path // of the content folder; nil before they are looked for
	known  map[string]bool      // types that the source brings; made on first use
}

// item is one node to import and the files that give it.
type item struct {
	path  node.Path
	json  string // node file, or ""
	doc   string // document, or ""
	index bool   // doc is the index of the folder, beside a node file
	print string // fingerprint as scanned; "" where a file could not be read
}

// note is something to say of a file. It counts as count, if that is not "".
type note struct {
	file, text string
	failed     bool
	count      string
}

// The counts of an import's activity. Of what the source holds, each file is counted once, so that those of files
// add up: considered = created + updated + unchanged + failed + joined + passedOver.
const (
	considered = "considered"
	created    = "created"    // nodes, each of one file but for what joined it
	updated    = "updated"    //
	unchanged  = "unchanged"  //
	failed     = "failed"     // files and nodes
	joined     = "joined"     // documents of a folder that were put into the node of a node file
	passedOver = "passedOver" // files that give no node, or one that another file gives

	copiedFiles = "files" // content files
	sameFiles   = "filesUnchanged"
	failedFiles = "filesFailed"
)

// plan walks the source. A file that gives no node is noted.
func (s *Service) plan(ctx context.Context, r Request) (*plan, error) {
	p := &plan{s: s, r: r, made: map[node.Path]string{}}
	if r.Source == nil {
		return p, nil
	}
	byPath := map[node.Path]*item{}
	files := 0
	err := fs.WalkDir(r.Source, ".", func(file string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			p.seen++
			p.notes = append(p.notes, note{file, err.Error(), true, failed})
			return nil
		}
		if d.IsDir() {
			if file != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if files++; files > maxFiles {
			return &SourceError{r.Name, fmt.Sprintf("more than %d files", maxFiles)}
		}
		p.take(byPath, file, d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, it := range byPath {
		p.items = append(p.items, *it)
	}
	// Parents first, and types before what is of them: a level at a time, in path order.
	slices.SortFunc(p.items, func(a, b item) int {
		if d := a.path.Depth() - b.path.Depth(); d != 0 {
			return d
		}
		return strings.Compare(string(a.path), string(b.path))
	})
	return p, nil
}

// take sorts one file in.
func (p *plan) take(byPath map[node.Path]*item, file string, d fs.DirEntry) {
	ext := strings.ToLower(path.Ext(file))
	if ext != ".json" && ext != ".md" {
		if !strings.HasPrefix(d.Name(), ".") {
			p.seen++
			p.notes = append(p.notes, note{file, "not a node file (.json, .md); it was passed over", false, passedOver})
		}
		return
	}
	p.seen++
	if !d.Type().IsRegular() {
		p.notes = append(p.notes, note{file, "not a regular file; it was passed over", false, passedOver})
		return
	}
	at, index, err := placeOf(p.r.Into, file)
	if err != nil {
		p.notes = append(p.notes, note{file, err.Error(), true, failed})
		return
	}
	it := byPath[at]
	if it == nil {
		it = &item{path: at}
		byPath[at] = it
	}
	loses := func(file, to string) {
		p.notes = append(p.notes, note{file, fmt.Sprintf("'%s' gives the same node and wins", to), false, passedOver})
	}
	switch {
	case ext == ".json" && it.json != "": // their endings differ in letter case
		loses(it.json, file)
		it.json = file
	case ext == ".json":
		it.json = file
	case index && it.doc != "" && !it.index:
		loses(file, it.doc)
	case !index && it.doc != "":
		loses(it.doc, file)
		it.doc, it.index = file, false
	default:
		it.doc, it.index = file, index
	}
}

// usesJSON tells whether the node file counts: a document wins over a node file of the same name
// (data.md §2.4); an index adds its text to one.
func (it *item) usesJSON() bool { return it.json != "" && (it.doc == "" || it.index) }

// second counts the second of two files that an item has.
func (it *item) second(progress *activity.Progress) {
	switch {
	case it.json == "" || it.doc == "":
	case it.index:
		progress.Count(joined, 1)
	default:
		progress.Count(passedOver, 1)
	}
}

// read reads a file, within the limit of a node file.
func (p *plan) read(file string) ([]byte, error) {
	f, err := p.r.Source.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	most := int64(4 * p.s.o.Limits.NodeBytes)
	if info.Size() > most {
		return nil, fmt.Errorf("%d bytes; a node file has at most %d", info.Size(), most)
	}
	text := make([]byte, 0, info.Size()+1) // one more, so that the end is seen without growing
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case int64(len(text)) > most:
			return nil, fmt.Errorf("it grew while it was read; a node file has at most %d bytes", most)
		case len(text) == cap(text):
			text = slices.Grow(text, len(text))
		}
	}
}

// digest is the running fingerprint of an item: of its place and of the bytes of its files in order.
type digest struct{ hash.Hash }

func newDigest(at node.Path) digest {
	p := digest{sha256.New()}
	p.Write([]byte(format + "\x00" + string(at)))
	return p
}

func (p digest) add(text []byte) {
	p.Write([]byte{0})
	p.Write(text)
}

func (p digest) String() string { return hex.EncodeToString(p.Sum(nil)[:16]) }

// load reads and parses the files of an item. The fingerprint is of their bytes.
func (p *plan) load(it item) (n node.Node, fingerprint string, notes []note, err error) {
	sum := newDigest(it.path)
	read := func(file string) ([]byte, error) {
		text, err := p.read(file)
		sum.add(text)
		return text, err
	}
	warn := func(file string, texts []string) {
		for _, t := range texts {
			notes = append(notes, note{file: file, text: t})
		}
	}
	var have bool
	if it.usesJSON() {
		text, err := read(it.json)
		if err == nil {
			var w []string
			n, w, err = parseJSON(text, it.path, p.s.o.Limits)
			warn(it.json, w)
		}
		if err != nil {
			return n, "", notes, &fileError{it.json, err}
		}
		have = true
	} else if it.json != "" {
		notes = append(notes, note{file: it.json, text: fmt.Sprintf("'%s' gives the same node and wins", it.doc)})
	}
	if it.doc != "" {
		text, err := read(it.doc)
		var doc node.Node
		if err == nil {
			var w []string
			doc, w, err = parseMarkdown(text, it.path, p.s.o.Limits)
			warn(it.doc, w)
		}
		if err == nil && have {
			n, err = withDocument(n, doc, p.s.o.Limits)
		} else if err == nil {
			n = doc
		}
		if err != nil {
			return n, "", notes, &fileError{it.doc, err}
		}
	}
	return n, sum.String(), notes, nil
}

// fileError is a fault of one file.
type fileError struct {
	file string
	err  error
}

func (e *fileError) Error() string { return e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// ensureSpaces makes the spaces that are missing. It fails where none can be made.
func (p *plan) ensureSpaces(ctx context.Context) error {
	spaces := map[node.Path]bool{}
	if p.r.Into != "" {
		spaces[node.Path(p.r.Into.Partition())] = true
	}
	for _, it := range p.items {
		if part := node.Path(it.path.Partition()); part != "_Access" {
			spaces[part] = true
		}
	}
	for _, at := range p.contentOwners() {
		spaces[node.Path(at.Partition())] = true
	}
	if len(spaces) == 0 && p.failures() == 0 {
		return &SourceError{p.r.Name, "there is nothing to import"}
	}
	if len(spaces) == 0 {
		return nil // its activity tells each file and its reason
	}
	some := false
	for _, name := range slices.Sorted(maps.Keys(spaces)) {
		if err := p.ensureSpace(ctx, name); err != nil {
			p.notes = append(p.notes, note{file: string(name), text: err.Error(), failed: true}) // its files count, each for itself
			continue
		}
		some = true
	}
	if !some {
		return &SourceError{p.r.Name, p.notes[len(p.notes)-1].text}
	}
	return nil
}

// failures counts what was found to be of no use before the import begins.
func (p *plan) failures() (n int) {
	for _, nt := range p.notes {
		if nt.failed {
			n++
		}
	}
	return n
}

// ensureSpace makes one space: from the source's own file where it has one, else an empty Space.
func (p *plan) ensureSpace(ctx context.Context, name node.Path) error {
	_, err := p.s.o.Nodes.Get(ctx, name)
	if err == nil {
		return nil
	}
	if !notFound(err) {
		return err
	}
	for _, it := range p.items {
		if it.path != name {
			continue
		}
		n, fingerprint, _, err := p.load(it)
		if err != nil {
			break // the file's own fault is told when the import comes to it
		}
		_ = p.settleType(ctx, &n, p.scan(ctx)) // told again when the import comes to it
		out, err := p.s.o.Nodes.Import(ctx, []node.Node{n})
		if err != nil {
			return err
		}
		if out[0].Err == nil && !out[0].Same {
			p.made[name] = fingerprint
		}
		return out[0].Err
	}
	n := node.Node{Path: name, NodeType: node.TypeSpace, Name: string(name), Content: node.RawContent(`{"$type":"Space"}`)}
	_, err = p.s.o.Nodes.Create(ctx, n)
	var exists *store.ExistsError
	if errors.As(err, &exists) && exists.Other == "" {
		return nil
	}
	return err
}

func notFound(err error) bool {
	if errors.As(err, new(*store.NotFoundError)) {
		return true
	}
	t, ok := message.TypeOf(err)
	return ok && t == message.NotFound
}
