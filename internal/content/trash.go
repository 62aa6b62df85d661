package content

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
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
}

// trash takes the files of deleted nodes out of the way, at once and by renaming, and removes them in
// the background. It is safe for concurrent use.
type trash struct {
	s *Service

	mu      sync.Mutex // held while files come to their place or leave it
	closed  bool
	flights map[*flight]struct{}

	sweeping bool     // what an earlier process left is still being looked for
	landed   []string // meanwhile: the files that have come

	wake chan struct{} // one place: what there is to remove is in the folder
	stop context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

func newTrash(s *Service) *trash {
	t := &trash{s: s, flights: map[*flight]struct{}{}, wake: make(chan struct{}, 1)}
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

// follow begins a flight for a further path within another one: what overtakes that overtakes both.
func (t *trash) follow(f *flight, at node.Path) *flight {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := &flight{paths: append(slices.Clip(f.paths), at), on: f.on, overtaken: f.overtaken}
	t.flights[next] = struct{}{}
	return next
}

func (t *trash) done(f *flight) {
	t.mu.Lock()
	delete(t.flights, f)
	t.mu.Unlock()
}

// land runs move, which brings a file to its place, unless a deletion overtook the flight: a file never
// comes to a place that was emptied after its upload began.
func (t *trash) land(f *flight, place string, move func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.overtaken {
		return &NotFoundError{}
	}
	if t.sweeping {
		t.landed = append(t.landed, place)
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
	switch {
	case c.Kind == store.Deleted:
		for _, place := range t.placesOf(c.Path) {
			t.discard(place)
		}
	case c.Kind == store.Created && c.Version > 1 && t.sweeping:
		// It has been there before. An end of the process may have come between that deletion and its
		// files, and the sweep not yet here.
		t.settle(c.Path)
	}
}

// placesOf are where files of a node and of those below it may lie: its folder, and its place in each
// collection that a node above passes on, or ever did. What is on disk tells, however the collections are
// configured by now.
func (t *trash) placesOf(p node.Path) []string {
	all := []string{nodeDir(p)}
	for _, above := range slices.Backward(slices.Collect(p.Ancestors())) {
		if above.IsRoot() {
			continue // it has no collections
		}
		if _, err := t.s.root.Lstat(nodeDir(above)); errors.Is(err, fs.ErrNotExist) {
			break // so have those below no folder
		}
		trees := path.Join(nodeDir(above), passedDir)
		list, err := t.s.entries(trees)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !isNoFile(err) {
			t.s.log.Error("files of a deleted node may stay: where they lie in the collections of a node above can not be read", "address", string(p), "folder", trees, "error", err)
		}
		for _, tree := range list {
			all = append(all, path.Join(trees, tree.Name(), nodeDir(p[len(above)+1:])))
		}
	}
	return all
}

// settle discards what a node that was deleted has left, what is of nodes below it apart; not a folder to
// which files have come in this process: there is a node again. t.mu is held.
func (t *trash) settle(p node.Path) {
	for i, place := range t.placesOf(p) {
		list, err := t.s.entries(place)
		if err != nil {
			continue // there is none
		}
		for _, d := range list {
			if d.Name() != layerDir && !(i == 0 && isCollection(d.Name())) {
				continue
			}
			dir := path.Join(place, d.Name())
			if !slices.ContainsFunc(t.landed, func(p string) bool { return strings.HasPrefix(p, dir+"/") }) {
				t.s.log.Warn("files of a node that was deleted are removed", "address", string(p))
				t.discard(dir)
			}
		}
	}
}

// isCollection tells whether an entry of a node's folder is a collection of it, or what it passes on.
func isCollection(name string) bool { return strings.HasPrefix(name, "~") && !isHashed(name) }

// discard moves a folder into the trash; t.mu is held.
func (t *trash) discard(place string) {
	info, err := t.s.root.Lstat(place)
	if err == nil && !info.IsDir() {
		return // a file of the node above that has the name
	}
	if err == nil {
		err = t.s.root.Rename(place, path.Join(trashDir, rand.Text()))
	}
	if err == nil && strings.Contains(place, passedDir+"/") {
		// A folder above that holds no layer any more is none of the collection either.
		for dir := path.Dir(place); strings.Contains(dir, passedDir) && t.s.root.Remove(dir) == nil; dir = path.Dir(dir) {
		}
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

// Start looks in the background for files whose node is gone: of a deletion that an end of the process
// overtook. Changes are fed to [Service.Changed] from before it begins.
func (s *Service) Start(rows Rows) {
	t := s.trash
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.sweeping = true
		t.work.Go(func() { t.sweepAll(rows) })
	}
}

func (t *trash) sweepAll(rows Rows) {
	t.sweep(rows, ".", "")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweeping, t.landed = false, nil
}

// sweep settles the nodes at and below a folder that were deleted. The folder is that of a node, or, with
// an owner, its place in a collection that the owner passes on. Where it can not be told for certain that
// the node was deleted, its files stay.
func (t *trash) sweep(rows Rows, dir, owner string) {
	list, err := t.s.entries(dir)
	if err != nil {
		return // gone meanwhile, or not readable: nothing is known of it
	}
	own := false
	for _, d := range list {
		name := path.Join(dir, d.Name())
		switch {
		case t.stop.Err() != nil:
			return
		case !d.IsDir() || isHashed(d.Name()):
			// The folder of a segment that is too long for a file name does not tell its node.
		case strings.HasPrefix(d.Name(), "~"):
			own = true
			if d.Name() == passedDir && owner == "" {
				trees, _ := t.s.entries(name) // without an error: as above
				for _, tree := range trees {
					t.sweep(rows, path.Join(name, tree.Name()), dir)
				}
			}
		default:
			t.sweep(rows, name, owner)
		}
	}
	if !own || dir == "." {
		return
	}
	if owner != "" {
		_, rel, _ := strings.Cut(strings.TrimPrefix(dir, owner+"/"+passedDir+"/"), "/")
		dir = owner + "/" + rel
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
	if !f.overtaken && !t.closed {
		t.settle(at)
	}
}

// abandonedAfter is the age at which an unfinished upload is no running process's any more.
const abandonedAfter = 24 * time.Hour

// prepare makes the folders at the root, and removes unfinished uploads: all of them, or, where other processes
// use the folder, those that are old.
func prepare(root *os.Root, shared bool) (err error) {
	if !shared {
		err = root.RemoveAll(uploadsDir)
	} else if dir, e := root.Open(uploadsDir); e == nil {
		list, e := dir.ReadDir(-1)
		err = errors.Join(e, dir.Close())
		for _, f := range list {
			if info, e := f.Info(); e == nil && time.Since(info.ModTime()) > abandonedAfter {
				err = errors.Join(err, root.Remove(path.Join(uploadsDir, f.Name())))
			}
		}
	}
	for _, dir := range []string{uploadsDir, trashDir} {
		if e := root.Mkdir(dir, 0o750); !errors.Is(e, fs.ErrExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
