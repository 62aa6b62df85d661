package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/hubmesh/hubmesh/internal/activity"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/store"
)

const (
	chunkNodes = 500     // nodes of one write
	chunkBytes = 4 << 20 // bytes of one write
	bucket     = "import"
)

// pending is a node of the chunk that is being filled.
type pending struct {
	node        node.Node
	file        string
	fingerprint string // "" where the next import is to look at the file again
}

// run is the import itself, as the work of its activity.
func (p *plan) run(ctx context.Context, progress *activity.Progress) error {
	progress.Count(considered, p.seen)
	for _, n := range p.notes {
		say(progress, n)
	}
	known, err := p.s.o.Store.Blobs().List(ctx, bucket+":"+string(p.r.Into))
	if err != nil {
		return err
	}
	present, err := p.present(ctx)
	if err != nil {
		return err
	}
	progress.Say("reading")
	types := p.scan(ctx)
	// Types first, then a level at a time: what a node needs to be there is there before it.
	slices.SortStableFunc(p.items, func(a, b item) int { return p.rank(a) - p.rank(b) })
	var chunk []pending
	size := 0
	for i, it := range p.items {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		it.second(progress)
		if it.print != "" && p.made[it.path] == "" && string(known[string(it.path)]) == it.print && present[it.path] {
			progress.Count(unchanged, 1)
			progress.Step(i+1, len(p.items))
			continue
		}
		n, fingerprint, notes, err := p.load(it)
		for _, nt := range notes {
			say(progress, nt)
		}
		if err != nil {
			say(progress, note{fileOf(it, err), err.Error(), true, failed})
			progress.Step(i+1, len(p.items))
			continue
		}
		isMade := p.made[it.path] == fingerprint
		if err := p.settleType(ctx, &n, types); err != nil {
			say(progress, note{file: fileOf(it, nil), text: err.Error()})
			fingerprint = "" // the type may be there the next time: the file is then not unchanged
		}
		if isMade {
			progress.Count(created, 1)
			progress.Affects(it.path.Partition())
			progress.Step(i+1, len(p.items))
			if err := p.remember(ctx, map[string][]byte{string(it.path): []byte(fingerprint)}); err != nil {
				return err
			}
			continue
		}
		chunk = append(chunk, pending{n, fileOf(it, nil), fingerprint})
		size += n.Content.Len()
		if len(chunk) == chunkNodes || size > chunkBytes || (i+1 < len(p.items) && p.rank(p.items[i+1]) != p.rank(it)) {
			if err := p.flush(ctx, progress, chunk); err != nil {
				return err
			}
			chunk, size = chunk[:0], 0
		}
		progress.Step(i+1, len(p.items))
	}
	if err := p.flush(ctx, progress, chunk); err != nil {
		return err
	}
	return p.files(ctx, progress)
}

// rank is the round in which an item is written.
func (p *plan) rank(it item) int {
	if p.known[string(it.path)] {
		return 0
	}
	return it.path.Depth()
}

func say(progress *activity.Progress, n note) {
	if n.count != "" {
		progress.Count(n.count, 1)
	}
	if n.failed {
		progress.Fail(n.file, n.text)
		return
	}
	progress.Count("warnings", 1)
	progress.Warn(n.file, n.text)
}

func fileOf(it item, err error) string {
	var f *fileError
	if errors.As(err, &f) {
		return f.file
	}
	if it.json != "" && (it.doc == "" || it.index) {
		return it.json
	}
	return it.doc
}

// present are the nodes that exist where the import writes: a fingerprint counts only while its node is
// there, so that an import heals what has vanished.
func (p *plan) present(ctx context.Context) (map[node.Path]bool, error) {
	roots := map[node.Path]bool{}
	if p.r.Into != "" {
		roots[p.r.Into] = true
	} else {
		for _, it := range p.items {
			roots[node.Path(it.path.Partition())] = true
		}
	}
	have := map[node.Path]bool{}
	for root := range roots {
		if root == "_Access" {
			continue
		}
		if _, err := p.s.o.Store.Read(ctx, root); err == nil {
			have[root] = true
		}
		for path, err := range p.s.o.Store.Descendants(ctx, root) {
			if err != nil {
				return nil, err
			}
			have[path] = true
		}
	}
	return have, nil
}

// scan reads every file once, takes the fingerprint of each item and returns the node types that the
// import itself brings, by path. What has not changed is not read again and never parsed. A file that
// cannot be read is told when the import comes to it.
func (p *plan) scan(ctx context.Context) map[string]bool {
	if p.known != nil {
		return p.known
	}
	p.known = map[string]bool{}
	isType := make([]bool, len(p.items))
	var work sync.WaitGroup
	scanners := max(runtime.GOMAXPROCS(0)-1, 1) // one processor is left to whoever reads beside the import
	for first := range scanners {
		work.Go(func() {
			for i := first; i < len(p.items) && ctx.Err() == nil; i += scanners {
				p.items[i].print, isType[i] = p.scanItem(&p.items[i])
			}
		})
	}
	work.Wait()
	for i, is := range isType {
		if is {
			p.known[string(p.items[i].path)] = true
		}
	}
	return p.known
}

// scanItem returns the fingerprint of an item, "" where a file of it could not be read, and whether it
// is a node type.
func (p *plan) scanItem(it *item) (print string, isType bool) {
	sum := newDigest(it.path)
	if it.json != "" {
		text, err := p.read(it.json)
		if err == nil && bytes.Contains(text, []byte(`"`+node.TypeNodeType+`"`)) {
			n, _, err := parseJSON(text, it.path, p.s.o.Limits)
			isType = err == nil && n.NodeType == node.TypeNodeType
		}
		if it.usesJSON() {
			if err != nil {
				return "", isType
			}
			sum.add(text)
		}
	}
	if it.doc != "" {
		text, err := p.read(it.doc)
		if err != nil {
			return "", isType
		}
		sum.add(text)
	}
	return sum.String(), isType
}

// settleType makes a node whose type nobody knows an untyped one, and says so. A type that the source
// brings itself counts by its place below Into, too.
func (p *plan) settleType(ctx context.Context, n *node.Node, types map[string]bool) error {
	if n.NodeType == "" || types[n.NodeType] {
		return nil
	}
	if p.r.Into != "" && types[string(p.r.Into)+"/"+n.NodeType] {
		n.NodeType = string(p.r.Into) + "/" + n.NodeType
		return nil
	}
	ok, err := p.s.o.Nodes.KnowsType(ctx, n.NodeType)
	if err != nil || ok {
		return err
	}
	unknown := n.NodeType
	n.NodeType = ""
	if n.Content.IsZero() {
		n.Content = node.RawContent("{}")
	}
	return fmt.Errorf("type '%s' is not known; the node was imported without a type", unknown)
}

// flush writes a chunk and remembers the fingerprints of what is there now.
func (p *plan) flush(ctx context.Context, progress *activity.Progress, chunk []pending) error {
	if len(chunk) == 0 {
		return nil
	}
	nodes := make([]node.Node, len(chunk))
	for i, c := range chunk {
		nodes[i] = c.node
	}
	outcomes, err := p.s.o.Nodes.Import(ctx, nodes)
	if err != nil {
		return err
	}
	prints := map[string][]byte{}
	written := map[string]bool{}
	for i, o := range outcomes {
		switch {
		case o.Err != nil:
			say(progress, note{chunk[i].file, o.Err.Error(), true, failed})
			continue
		case o.Same:
			progress.Count(unchanged, 1)
		case o.Created:
			progress.Count(created, 1)
		default:
			progress.Count(updated, 1)
		}
		if !o.Same {
			written[o.Path.Partition()] = true
		}
		prints[string(o.Path)] = []byte(chunk[i].fingerprint)
	}
	for _, partition := range slices.Sorted(maps.Keys(written)) {
		progress.Affects(partition)
	}
	return p.remember(ctx, prints)
}

func (p *plan) remember(ctx context.Context, prints map[string][]byte) error {
	return p.s.o.Store.Blobs().PutMany(ctx, bucket+":"+string(p.r.Into), prints)
}

// contentOwners are the nodes that the content folder has files for: its top-level folders. They are looked for
// once; what is none is noted.
func (p *plan) contentOwners() map[string]node.Path {
	if p.owners != nil || p.r.Content == nil {
		return p.owners
	}
	p.owners = map[string]node.Path{}
	list, err := fs.ReadDir(p.r.Content, ".")
	if err != nil {
		p.notes = append(p.notes, note{"content", err.Error(), true, failedFiles})
		return p.owners
	}
	for _, d := range list {
		if strings.HasPrefix(d.Name(), ".") {
			continue
		}
		if !d.IsDir() {
			p.notes = append(p.notes, note{file: d.Name(), text: "it lies in no folder of a node among the content files; it was passed over"})
			continue
		}
		at, _, err := placeOf(p.r.Into, d.Name()+"/x.json")
		if err != nil {
			p.notes = append(p.notes, note{d.Name(), err.Error(), true, failedFiles})
			continue
		}
		p.owners[d.Name()] = at.Parent()
	}
	return p.owners
}

// files copies the content folder and publishes each part as collection "content" of its node. Where
// there is no such node, the files go to the nearest one above, below the part's place: that is where
// their addresses are looked up (edge.md CR-4, CR-7).
func (p *plan) files(ctx context.Context, progress *activity.Progress) error {
	owners := p.contentOwners()
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		place := owners[name]
		progress.Say("copying files of " + string(place))
		src, err := fs.Sub(p.r.Content, name)
		if err != nil {
			return err
		}
		at, dir, err := p.nearest(ctx, place)
		if errors.As(err, new(*store.NotFoundError)) {
			say(progress, note{file: name, text: fmt.Sprintf("no node at '%s', its files are not reachable and were not copied", place)})
			continue
		}
		if err != nil {
			return err
		}
		err = p.s.o.Nodes.EnsureCollection(ctx, at, nodehub.Collection{Name: "content", SourceType: "folder", IsStatic: true, IsEditable: true, IsInherited: true})
		if err != nil {
			say(progress, note{name, err.Error(), true, failedFiles})
			continue
		}
		copied, same, err := p.s.o.Content.CopyIn(ctx, at, "content", dir, src, func(file string, err error) {
			say(progress, note{name + "/" + file, err.Error(), true, failedFiles})
		})
		progress.Count(copiedFiles, copied)
		if copied > 0 {
			progress.Affects(at.Partition())
		}
		progress.Count(sameFiles, same)
		var closed Closed
		if errors.As(err, &closed) {
			say(progress, note{file: name, text: fmt.Sprintf("%v: the files of '%s' were not copied; set isEditable in '%s/%s/content' to take them", closed, place, at, nodehub.CollectionSegment)})
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nearest is the deepest node at or above a path, and the rest of the path.
func (p *plan) nearest(ctx context.Context, place node.Path) (at node.Path, rest string, err error) {
	n, err := p.s.o.Store.Prefix(ctx, place)
	if err != nil {
		return "", "", err
	}
	return n.Path, strings.TrimPrefix(strings.TrimPrefix(string(place), string(n.Path)), "/"), nil
}
