package content

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Folders at the root that are no node's: "~" cannot stand in a node path, and the root scope has no
// collections.
const (
	uploadsDir = "~uploads" // files that are being written; emptied at start
	trashDir   = "~trash"   // what belonged to deleted nodes; emptied in the background
)

// Rows reads nodes as they are stored.
type Rows interface {
	Read(ctx context.Context, path node.Path) (node.Node, error)
	Select(ctx context.Context, q query.Query) ([]node.Node, error)
}

// trash takes the files of deleted nodes out of the way, at once and by renaming, and removes them in
// the background. It is safe for concurrent use.
type trash struct {
	s *Service

	mu      sync.Mutex // held while files come to their place or leave it
	closed  bool
	flights map[*flight]struct{}
	passed  map[node.Path]map[string]string // by owner and name: the base path of collections that are passed on

	wake chan struct{} // one place: what there is to remove is in the folder
	stop context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

func newTrash(s *Service) *trash {
	t := &trash{s: s, flights: map[*flight]struct{}{}, passed: map[node.Path]map[string]string{}, wake: make(chan struct{}, 1)}
	t.stop, t.end = context.WithCancel(context.Background())
	t.wake <- struct{}{} // what an earlier process left
	t.work.Go(t.run)
	return t
}

func (t *trash) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.work.Wait()
}

// flight is a file on its way to its place, or a look at whether a folder has a node. It learns whether
// a change overtook it.
type flight struct {
	paths     []node.Path
	on        store.ChangeKind
	overtaken bool
}

// begin registers a flight for a path. It begins before what it relies on is read, and ends with end.
func (t *trash) begin(on store.ChangeKind, at node.Path) *flight {
	f := &flight{paths: []node.Path{at}, on: on}
	t.mu.Lock()
	t.flights[f] = struct{}{}
	t.mu.Unlock()
	return f
}

// also makes the flight one for a further path.
func (t *trash) also(f *flight, at node.Path) {
	t.mu.Lock()
	f.paths = append(f.paths, at)
	t.mu.Unlock()
}

func (t *trash) done(f *flight) {
	t.mu.Lock()
	delete(t.flights, f)
	t.mu.Unlock()
}

// land runs move, which brings files to their place, unless a deletion overtook the flight: a file never
// comes to a place that was emptied after its upload began.
func (t *trash) land(f *flight, move func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.overtaken {
		return &NotFoundError{}
	}
	return move()
}

// Changed takes a committed change from the store's feed. It runs on the committing goroutine: when the
// writer of a deletion is answered, the files of the node are out of reach for whoever makes a node
// there anew. Where nothing is stored it costs a few system calls.
func (s *Service) Changed(c store.Change) {
	t := s.trash
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for f := range t.flights {
		for _, p := range f.paths {
			if f.on == c.Kind && c.Path.Contains(p) {
				f.overtaken = true
			}
		}
	}
	if c.Kind != store.Deleted {
		t.configured(c.Node)
		return
	}
	// A collection that is not passed on any more has its files still, so that its base path is kept.
	delete(t.passed, c.Path)
	for _, place := range t.places(c.Path) {
		t.discard(place)
	}
}

// configured learns from a node that may configure a collection.
func (t *trash) configured(n node.Node) {
	dir := n.Path.Parent()
	if n.NodeType != nodehub.TypeCollection || dir.ID() != nodehub.CollectionSegment || dir.Depth() < 2 {
		return
	}
	var c nodehub.Collection
	if err := n.Content.Decode(&c); err != nil {
		return // the owner tells nobody of such a collection
	}
	owner := dir.Parent()
	if !c.IsInherited {
		delete(t.passed[owner], n.Path.ID())
		return
	}
	if t.passed[owner] == nil {
		t.passed[owner] = map[string]string{}
	}
	t.passed[owner][n.Path.ID()] = c.BasePath
}

// places are where files of a node may lie: its own folder, and its place in each collection that a node
// above passes on.
func (t *trash) places(p node.Path) []string {
	var all []string
	if dir, err := ownDir(p); err == nil {
		all = append(all, dir)
	}
	for above := range p.Ancestors() {
		for name, base := range t.passed[above] {
			if dir, err := diskPath(above, name, base, strings.TrimPrefix(string(p), string(above)+"/")); err == nil {
				all = append(all, dir)
			}
		}
	}
	return all
}

// ownDir is the folder of a node.
func ownDir(p node.Path) (string, error) {
	dir, err := collectionDir(p, defaultCollection)
	return path.Dir(dir), err
}

// discard moves a folder into the trash; t.mu is held.
func (t *trash) discard(place string) {
	info, err := t.s.root.Lstat(place)
	if err == nil && !info.IsDir() {
		return // a file of the node above that has the name
	}
	if err == nil {
		err = t.s.root.Rename(place, path.Join(trashDir, rand.Text()))
	}
	switch {
	case err == nil:
		select {
		case t.wake <- struct{}{}:
		default:
		}
	case !errors.Is(err, fs.ErrNotExist) && !isNoFile(err):
		t.s.log.Error("files of a deleted node stay where they are; remove the folder by hand", "folder", place, "error", err)
	}
}

// run removes what is in the trash, whenever it is woken.
func (t *trash) run() {
	for {
		select {
		case <-t.stop.Done():
			return
		case <-t.wake:
		}
		if err := t.empty(trashDir); err != nil && t.stop.Err() == nil {
			t.s.log.Warn("removing files of deleted nodes failed; it is tried again with the next deletion and at the next start", "error", err)
		}
	}
}

// empty removes what is in a folder, and stops where the service closes.
func (t *trash) empty(dir string) error {
	list, err := t.s.entries(dir)
	for _, d := range list {
		if t.stop.Err() != nil {
			return t.stop.Err()
		}
		name := path.Join(dir, d.Name())
		if d.IsDir() {
			err = errors.Join(err, t.empty(name))
		}
		err = errors.Join(err, t.s.root.Remove(name))
	}
	return err
}

// entries lists a folder.
func (s *Service) entries(dir string) ([]fs.DirEntry, error) {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}

// Start learns which collections are passed on, and looks in the background for files whose node is
// gone: of a deletion that an end of the process overtook. Changes are fed to [Service.Changed] from
// before it begins.
func (s *Service) Start(ctx context.Context, rows Rows) error {
	q, err := query.Parse("nodeType:" + nodehub.TypeCollection + " scope:subtree")
	if err != nil {
		return err
	}
	nodes, err := rows.Select(ctx, q)
	if err != nil {
		return fmt.Errorf("content: reading the collections: %w", err)
	}
	s.trash.mu.Lock()
	defer s.trash.mu.Unlock()
	for _, n := range nodes {
		s.trash.configured(n)
	}
	if !s.trash.closed {
		s.trash.work.Go(func() { s.trash.sweep(rows, ".") })
	}
	return nil
}

// sweep discards the collections below a folder whose node was deleted. Where that can not be told for
// certain, they stay.
func (t *trash) sweep(rows Rows, dir string) {
	list, err := t.s.entries(dir)
	if err != nil {
		return // gone meanwhile, or not readable: nothing is known of it
	}
	var own []string
	for _, d := range list {
		name := path.Join(dir, d.Name())
		switch {
		case t.stop.Err() != nil:
			return
		case !d.IsDir() || strings.HasPrefix(d.Name(), "~h") && len(d.Name()) == hashedName:
			// The folder of a segment that is too long for a file name does not tell its node.
		case strings.HasPrefix(d.Name(), "~"):
			own = append(own, name)
		default:
			t.sweep(rows, name)
		}
	}
	if len(own) == 0 || dir == "." {
		return
	}
	at, err := node.ParsePath(dir)
	if err != nil {
		return
	}
	f := t.begin(store.Created, at)
	defer t.done(f)
	// Only a tombstone says that there was such a node and that it was deleted. A database that is new,
	// lost, or restored from before the node was made says nothing about its files.
	var missing *store.NotFoundError
	if _, err := rows.Read(t.stop, at); !errors.As(err, &missing) || missing.LastVersion == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.overtaken || t.closed {
		return
	}
	t.s.log.Warn("files of a node that was deleted are removed", "address", string(at))
	for _, place := range own {
		t.discard(place)
	}
}

// prepare makes the folders at the root, and empties that of unfinished uploads.
func prepare(root *os.Root) error {
	err := root.RemoveAll(uploadsDir)
	for _, dir := range []string{uploadsDir, trashDir} {
		if e := root.Mkdir(dir, 0o750); !errors.Is(e, fs.ErrExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
