package content

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/nodehub"
	"github.com/hubmesh/hubmesh/internal/route"
	"github.com/hubmesh/hubmesh/internal/store"
)

// defaultCollection is the collection that a path without one means.
const defaultCollection = "content"

// maxOpen bounds the files that are open at once; further reads wait within their budget.
const maxOpen = 256

// Owners asks a node's owner about its collections, in the name of whoever ctx carries.
type Owners interface {
	Collections(ctx context.Context, path node.Path, names ...string) (*nodehub.CollectionsReply, error)
	EnsureCollection(ctx context.Context, at node.Path, c nodehub.Collection) error
}

// Permissions decides about writes.
type Permissions interface {
	Require(ctx context.Context, path node.Path, need access.Permission) error
}

// Options configure a service.
type Options struct {
	Mesh        *hub.Mesh
	Resolver    *route.Resolver
	Owners      Owners
	Permissions Permissions
	Reads       *hub.Hub // in whose name the owner is asked; what the diagnosis shows as the reader
	Dir         string   // the root of all collections
	Shared      bool     // other processes use Dir, too
	MaxUpload   int64    // bytes; default 200 MiB
	Logger      *slog.Logger
}

// Service reads and writes the files of collections. It is safe for concurrent use.
type Service struct {
	mesh     *hub.Mesh
	resolver *route.Resolver
	owners   Owners
	permit   Permissions
	reads    *hub.Hub
	root     *os.Root
	most     int64
	log      *slog.Logger
	open     chan struct{}
	lapses   lapses
	index    *indexer
	trash    *trash
	turns    *turns

	// For tests: checked, when set, is called after the look at a condition, and changing in the turn of the
	// change, when it is known to hold still.
	checked, changing func()
}

// New opens the root folder, making it when needed; unfinished uploads of an earlier process are removed.
// Close the service.
func New(o Options) (*Service, error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	if o.MaxUpload <= 0 {
		o.MaxUpload = 200 << 20
	}
	if o.Logger == nil {
		o.Logger = o.Mesh.Logger()
	}
	if err := prepare(root, o.Shared); err != nil {
		return nil, errors.Join(fmt.Errorf("content: %w", err), root.Close())
	}
	s := &Service{mesh: o.Mesh, resolver: o.Resolver, owners: o.Owners, permit: o.Permissions, reads: o.Reads, root: root, most: o.MaxUpload,
		log: o.Logger, open: make(chan struct{}, maxOpen)}
	if s.turns, err = newTurns(root, o.Shared); err != nil {
		return nil, errors.Join(fmt.Errorf("content: %w", err), root.Close())
	}
	s.index = newIndexer(root)
	s.trash = newTrash(s)
	return s, nil
}

// Close waits for the work that is under way and releases the root. What is left in the trash goes with
// the next start.
func (s *Service) Close() error {
	s.trash.close()
	s.index.close()
	return errors.Join(s.turns.close(), s.root.Close())
}

// NotFoundError is the one answer to everything that must not be told apart.
type NotFoundError struct{}

func (*NotFoundError) Error() string { return "no such file" }

// File is an open file of a collection. Close it.
type File struct {
	io.ReadSeeker
	Name     string // the last segment
	Size     int64
	Modified time.Time
	ETag     string // strong, for files below BufferLimit; "" above
	release  func()
	closer   io.Closer
}

// Close releases the file.
func (f *File) Close() error {
	defer f.release()
	return f.closer.Close()
}

// Read opens the file that the segments of a content path name: node, collection, file, each already
// decoded. It fails with *NotFoundError, with *Unreachable when no verdict was reached in time, with
// *access.UndeterminedError, or with a transient *message.Failure.
func (s *Service) Read(ctx context.Context, segments []string) (*File, error) {
	path, err := pathOf(segments)
	if err != nil {
		return nil, &NotFoundError{}
	}
	if s.reads.Gone() {
		// Never through the router instead (edge.md CR-6).
		return nil, &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonStopping, AnsweredBy: s.reads.Path(), Message: "this process is shutting down"}
	}
	now := s.mesh.Clock().Now()
	b, res, err := s.locate(ctx, path, now)
	if err != nil {
		return nil, err
	}
	ctx = budget.With(ctx, b)
	if res.Rest == "" {
		return nil, &NotFoundError{}
	}
	names, rest := candidates(res.Rest)
	reply, err := s.owners.Collections(ctx, res.Node, names...)
	if err != nil {
		return nil, s.explain(ctx, string(path), string(res.Node), now, err)
	}
	if !reply.MayRead {
		return nil, &NotFoundError{}
	}
	c, file, ok := choose(res.Node, reply.Collections, names, rest)
	if !ok || !c.IsStatic {
		return nil, &NotFoundError{}
	}
	if err := s.reach(ctx, c, folderOf(file), access.Read); err != nil {
		return nil, err
	}
	f, err := s.openFile(ctx, b, c, file)
	if err != nil {
		return nil, s.explain(ctx, string(path), string(res.Node), now, err)
	}
	// It may have come there after it was denied, and that after it was asked for.
	if err := s.still(ctx, res.Node, c, folderOf(file)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// still checks once more, after something of a collection was read, that the caller may read it.
func (s *Service) still(ctx context.Context, at node.Path, c nodehub.Collection, dir string) error {
	err := s.permit.Require(ctx, at, access.Read)
	if errors.As(err, new(*store.NotFoundError)) {
		return &NotFoundError{}
	}
	if err != nil {
		return err
	}
	return s.reach(ctx, c, dir, access.Read)
}

// locate takes the read budget, which begins at now, and finds the node that a path belongs to within it.
func (s *Service) locate(ctx context.Context, path node.Path, now int64) (budget.Budget, route.Resolution, error) {
	b, err := s.mesh.Bounds().Take(budget.From(ctx), now, budget.Read)
	if err != nil {
		return b, route.Resolution{}, err
	}
	res, err := s.resolve(budget.With(ctx, b), path, b)
	if err != nil {
		err = s.explain(ctx, string(path), string(path), now, err)
	}
	return b, res, err
}

// pathOf joins segments into a path, refusing what cannot be one.
func pathOf(segments []string) (node.Path, error) {
	for _, seg := range segments {
		if seg == "" || seg == "." || seg == ".." || strings.ContainsAny(seg, "/\\\x00") {
			return "", &NotFoundError{}
		}
	}
	return node.ParsePath(strings.Join(segments, "/"))
}

// resolve finds the node that the path belongs to, within the read's own budget.
func (s *Service) resolve(ctx context.Context, path node.Path, b budget.Budget) (route.Resolution, error) {
	if res, ok := s.resolver.Warm(path); ok {
		return res, nil
	}
	inner, err := s.mesh.Bounds().Take(b, s.mesh.Clock().Now(), budget.Resolve)
	if err != nil {
		return route.Resolution{}, err
	}
	left := time.Duration(inner.Deadline - s.mesh.Clock().Now())
	lapse := &budget.Lapse{Bound: budget.Resolve, By: inner.By, Size: left, Elapsed: left, Operation: "resolve", Target: string(path), ReportedBy: budget.ByCaller,
		Clause: "the path was not resolved to a node in time"}
	wait, cancel := budget.Until(ctx, left, lapse)
	defer cancel()
	return s.resolver.Resolve(wait, path)
}

// candidates are the collections that a remainder may mean: the one that its first segment names, when
// a file follows, and the default. "~" in the name stands for "/".
func candidates(rest string) (names []string, file string) {
	first, after, more := strings.Cut(rest, "/")
	if !more {
		return []string{defaultCollection}, rest
	}
	return []string{strings.ReplaceAll(first, "~", "/"), defaultCollection}, after
}

// choose picks the collection and the file in it (edge.md CR-7): a named collection wins; else the
// default one with the whole remainder, below the node's own place where an ancestor owns it.
func choose(at node.Path, have []nodehub.Collection, names []string, after string) (nodehub.Collection, string, bool) {
	find := func(name string) (nodehub.Collection, bool) {
		for _, c := range have {
			if c.Name == name {
				return c, true
			}
		}
		return nodehub.Collection{}, false
	}
	place := func(c nodehub.Collection, file string) string {
		if owner := node.Path(c.Address); owner != at && owner.Contains(at) {
			return strings.TrimPrefix(string(at), string(owner)+"/") + "/" + file
		}
		return file
	}
	if len(names) == 2 {
		if c, ok := find(names[0]); ok {
			return c, place(c, after), true
		}
		after = strings.ReplaceAll(names[0], "/", "~") + "/" + after
	}
	c, ok := find(defaultCollection)
	return c, place(c, after), ok
}

// openFile opens a file of a collection through the rooted handle.
func (s *Service) openFile(ctx context.Context, b budget.Budget, c nodehub.Collection, file string) (*File, error) {
	spots, err := s.spots(c, file, false)
	if errors.Is(err, errBadName) {
		return nil, &NotFoundError{}
	}
	if err != nil {
		return nil, fmt.Errorf("content: open: %w", err)
	}
	left, _ := b.Remaining(s.mesh.Clock().Now())
	wait, cancel := budget.Until(ctx, left, &budget.Lapse{Bound: budget.Read, By: b.By, Size: s.mesh.Bounds().Own(budget.Read), Elapsed: left,
		Operation: "open file", Target: c.Address, ReportedBy: budget.ByCaller, Clause: "every place for an open file is taken"})
	defer cancel()
	select {
	case s.open <- struct{}{}:
	case <-wait.Done():
		return nil, context.Cause(wait)
	}
	release := func() { <-s.open }
	f, name, info, err := s.openFirst(spots)
	if err != nil {
		release()
		return nil, err
	}
	out := &File{ReadSeeker: f, Name: lastSegment(file), Size: info.Size(), Modified: info.ModTime(), release: release, closer: f}
	if info.Size() < BufferLimit {
		if out.ETag, err = s.index.etag(name, info, f); err != nil {
			out.Close()
			return nil, fmt.Errorf("content: read: %w", err)
		}
	}
	return out, nil
}

// openFirst opens the first of the spots that is a file.
func (s *Service) openFirst(spots []string) (f *os.File, name string, info os.FileInfo, err error) {
	for _, name := range spots {
		f, err := s.root.Open(name)
		switch {
		case err == nil:
		case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), isNoFile(err):
			continue
		default:
			return nil, "", nil, fmt.Errorf("content: open: %w", err)
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return f, name, info, nil
		}
		f.Close()
	}
	return nil, "", nil, &NotFoundError{}
}

// explain turns why no verdict was reached into the error for the reader. A lapse becomes *Unreachable;
// a refusal is indistinguishable from absence.
func (s *Service) explain(ctx context.Context, path, target string, began int64, err error) error {
	var lapse *budget.Lapse
	if errors.As(err, &lapse) {
		return s.unreachable(ctx, path, target, began, lapse)
	}
	var missing *store.NotFoundError
	var denied *access.DeniedError
	if errors.As(err, &missing) || errors.As(err, &denied) {
		return &NotFoundError{}
	}
	if t, ok := message.TypeOf(err); ok && (t == message.NotFound || t == message.Unauthorized || t == message.Forbidden) {
		return &NotFoundError{}
	}
	return err
}
