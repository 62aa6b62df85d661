package demo

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// lease is the store of all silos as one of them uses it: nothing reaches it from a silo that is frozen or was
// killed, and nothing comes back.
type lease struct {
	s    store.Store
	g    *gate
	name string // marks what this silo has written: to another one its hubs' writes are foreign
}

var _ store.Store = (*lease)(nil)

// through asks the store through the gate.
func through[T any](ctx context.Context, g *gate, f func() (T, error)) (got T, err error) {
	if err := g.pass(ctx); err != nil {
		return got, away(err)
	}
	got, err = f()
	if gone := g.pass(ctx); gone != nil {
		var none T
		return none, away(gone)
	}
	return got, err
}

func away(err error) error {
	return &store.UnavailableError{Op: "reach the store", Hint: "this silo is frozen or was killed", Transient: true, Err: err}
}

func nothing(f func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, f() }
}

func (l *lease) Read(ctx context.Context, path node.Path) (node.Node, error) {
	return through(ctx, l.g, func() (node.Node, error) { return l.s.Read(ctx, path) })
}

func (l *lease) ReadMany(ctx context.Context, paths []node.Path) ([]node.Node, error) {
	return through(ctx, l.g, func() ([]node.Node, error) { return l.s.ReadMany(ctx, paths) })
}

func (l *lease) Prefix(ctx context.Context, path node.Path) (node.Node, error) {
	return through(ctx, l.g, func() (node.Node, error) { return l.s.Prefix(ctx, path) })
}

// Commit returns once the silo has been told of its own changes: where it was frozen meanwhile, after what was
// committed before.
func (l *lease) Commit(ctx context.Context, batch []store.Write) ([]store.Result, error) {
	if err := l.g.settle(ctx); err != nil {
		return nil, away(err)
	}
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Origin = l.name + "/" + batch[i].Origin
	}
	done, err := l.s.Commit(ctx, batch)
	if gone := l.g.settle(context.WithoutCancel(ctx)); gone != nil {
		return nil, away(gone)
	}
	return done, err
}

func (l *lease) Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, error) {
	return through(ctx, l.g, func() ([]store.Entry, error) { return l.s.Children(ctx, path, page) })
}

func (l *lease) Descendants(ctx context.Context, path node.Path) iter.Seq2[node.Path, error] {
	return func(yield func(node.Path, error) bool) {
		for p, err := range l.s.Descendants(ctx, path) {
			if gone := l.g.pass(ctx); gone != nil {
				yield("", away(gone))
				return
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

func (l *lease) Select(ctx context.Context, q query.Query) ([]node.Node, error) {
	return through(ctx, l.g, func() ([]node.Node, error) { return l.s.Select(ctx, q) })
}

func (l *lease) Versions(ctx context.Context, path node.Path, page store.VersionPage) ([]store.VersionInfo, error) {
	return through(ctx, l.g, func() ([]store.VersionInfo, error) { return l.s.Versions(ctx, path, page) })
}

func (l *lease) At(ctx context.Context, path node.Path, version int64) (node.Node, error) {
	return through(ctx, l.g, func() (node.Node, error) { return l.s.At(ctx, path, version) })
}

func (l *lease) EnsurePartition(ctx context.Context, name, by string) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.s.EnsurePartition(ctx, name, by) }))
	return err
}

func (l *lease) Partitions(ctx context.Context) ([]store.Partition, error) {
	return through(ctx, l.g, func() ([]store.Partition, error) { return l.s.Partitions(ctx) })
}

func (l *lease) MarkPartition(ctx context.Context, name string, deleting bool) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.s.MarkPartition(ctx, name, deleting) }))
	return err
}

func (l *lease) RemovePartition(ctx context.Context, name string) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.s.RemovePartition(ctx, name) }))
	return err
}

// Subscribe tells fn of every commit of every silo, in their order.
func (l *lease) Subscribe(fn func(store.Change)) (cancel func()) {
	return l.s.Subscribe(func(c store.Change) {
		if own, ok := strings.CutPrefix(c.Origin, l.name+"/"); ok {
			c.Origin = own
		}
		l.g.run(func() { fn(c) })
	})
}

func (l *lease) Blobs() store.Blobs { return leasedBlobs{l.s.Blobs(), l.g} }

func (l *lease) Settle(ctx context.Context) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.s.Settle(ctx) }))
	return err
}

func (l *lease) Ready(ctx context.Context) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.s.Ready(ctx) }))
	return err
}

// Close leaves the store open: others use it.
func (l *lease) Close() error { return nil }

// leasedBlobs are the blobs of a lease.
type leasedBlobs struct {
	b store.Blobs
	g *gate
}

func (l leasedBlobs) Get(ctx context.Context, bucket, key string) ([]byte, error) {
	return through(ctx, l.g, func() ([]byte, error) { return l.b.Get(ctx, bucket, key) })
}

func (l leasedBlobs) Put(ctx context.Context, bucket, key string, value []byte) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.b.Put(ctx, bucket, key, value) }))
	return err
}

func (l leasedBlobs) PutMany(ctx context.Context, bucket string, values map[string][]byte) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.b.PutMany(ctx, bucket, values) }))
	return err
}

func (l leasedBlobs) Delete(ctx context.Context, bucket, key string) error {
	_, err := through(ctx, l.g, nothing(func() error { return l.b.Delete(ctx, bucket, key) }))
	return err
}

func (l leasedBlobs) List(ctx context.Context, bucket string) (map[string][]byte, error) {
	return through(ctx, l.g, func() (map[string][]byte, error) { return l.b.List(ctx, bucket) })
}
