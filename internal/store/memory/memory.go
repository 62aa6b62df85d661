package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

var _ store.Store = (*Store)(nil)

// Options of a store; the zero value is the standard.
type Options struct {
	History   int // versions kept of a node; 0 is store.DefaultHistory
	ScanRows  int // nodes that a query may look at; 0 is store.DefaultScanRows
	ScanBytes int // bytes that a query may return; 0 is store.DefaultScanBytes
	// Now stamps changes; nil is time.Now.
	Now func() time.Time
	// OnPanic is told of a contained panic of a subscriber; see store.Fanout.
	OnPanic func(value any, stack []byte)
}

// Store keeps nodes in memory. Make one with [New].
type Store struct {
	options Options
	fanout  store.Fanout
	// writing is held by the one writer, from its checks to the end of its publication, so that
	// changes are published in commit order. A channel, because waiting for it observes a context.
	writing chan struct{}

	mu         sync.RWMutex // guards what follows
	closed     bool
	nodes      map[node.Path]*node.Node // values are immutable
	order      []node.Path              // the keys of nodes, in path order
	folded     map[string]node.Path     // by folded path
	history    map[node.Path][]version  // oldest first, the current one included
	tombstones map[node.Path]int64
	partitions map[string]store.Partition // by folded name
	blobs      map[string]map[string][]byte
}

// version is one entry of a node's history; node is nil for a deletion.
type version struct {
	info store.VersionInfo
	node *node.Node
}

// New returns an empty store.
func New(options Options) *Store {
	if options.History <= 0 {
		options.History = store.DefaultHistory
	}
	if options.ScanRows <= 0 {
		options.ScanRows = store.DefaultScanRows
	}
	if options.ScanBytes <= 0 {
		options.ScanBytes = store.DefaultScanBytes
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Store{
		options:    options,
		fanout:     store.Fanout{OnPanic: options.OnPanic},
		writing:    make(chan struct{}, 1),
		nodes:      map[node.Path]*node.Node{},
		folded:     map[string]node.Path{},
		history:    map[node.Path][]version{},
		tombstones: map[node.Path]int64{},
		partitions: map[string]store.Partition{},
		blobs:      map[string]map[string][]byte{},
	}
}

// Subscribe registers fn for every committed change; see [store.Store].
func (s *Store) Subscribe(fn func(store.Change)) (cancel func()) { return s.fanout.Subscribe(fn) }

// Settle returns at once; see [store.Store].
func (s *Store) Settle(ctx context.Context) error {
	defer s.mu.RUnlock()
	return s.read(ctx)
}

// Ready returns nil until the store is closed.
func (s *Store) Ready(ctx context.Context) error {
	defer s.mu.RUnlock()
	return s.read(ctx)
}

// Close waits for a running commit; every later call answers store.ErrClosed.
func (s *Store) Close() error {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// read takes the lock for reading, also when it answers an error.
func (s *Store) read(ctx context.Context) error {
	s.mu.RLock()
	if s.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

// turn becomes the one writer.
func (s *Store) turn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write becomes the one writer and takes the lock; done gives both back.
func (s *Store) write(ctx context.Context) (done func(), err error) {
	if err := s.turn(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	done = func() {
		s.mu.Unlock()
		<-s.writing
	}
	if s.closed {
		done()
		return nil, store.ErrClosed
	}
	return done, nil
}

func (s *Store) insertOrder(path node.Path) {
	i, found := slices.BinarySearchFunc(s.order, path, node.Path.Compare)
	if !found {
		s.order = slices.Insert(s.order, i, path)
	}
}

func (s *Store) deleteOrder(path node.Path) {
	if i, found := slices.BinarySearchFunc(s.order, path, node.Path.Compare); found {
		s.order = slices.Delete(s.order, i, i+1)
	}
}
