package feed

import (
	"context"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Source is a store that several processes share, as the feed uses it. The functions are safe for concurrent
// use, end when their context ends, and return errors that the feed answers by trying again.
type Source struct {
	// Origin names this process in the change rows that it writes.
	Origin string
	// Poll is how often to look without a wake-up: 0 is a second; 250 ms behind a pooler.
	Poll time.Duration
	// Connect opens a connection on which changes are read, one for the reader and one a consumer.
	Connect func(ctx context.Context) (Connection, error)
	// Listen opens the connection that hears wake-ups. Nil: there is none, as behind a transaction pooler,
	// which may also change the server without a word, so the reader then verifies every ten seconds.
	Listen func(ctx context.Context) (Listener, error)
	// Notify sends one empty wake-up to the other processes. It keeps a connection of its own, and opens it
	// anew after an error. Nil: the others poll.
	Notify func(ctx context.Context) error
	// Unsure tells, once, whether a row of this process is of a write whose outcome it does not know, and
	// which it has therefore not published. Nil: there are none.
	Unsure func(path node.Path, version int64) bool
	// Read returns the nodes that exist, as they are stored.
	Read func(ctx context.Context, paths []node.Path) ([]node.Node, error)
	// Bare says that the table is another program's, without the trigger that writes change rows: a payload
	// of the listener is then itself the news, and not only a wake-up.
	Bare bool
}

// pooledPoll is how often to look behind a transaction pooler, through which nothing can be listened to.
const pooledPoll = 250 * time.Millisecond

// Shared is a store that several processes share, with its own types of connections.
type Shared[C Connection, L Listener] interface {
	Origin() string
	Pooled() bool
	Notify(ctx context.Context) error
	Unsure(path node.Path, version int64) bool
	ReadMany(ctx context.Context, paths []node.Path) ([]node.Node, error)
	Changes(ctx context.Context) (C, error)
	Listen(ctx context.Context) (L, error)
}

// SourceOf is a store as the feed uses it.
func SourceOf[C Connection, L Listener](s Shared[C, L]) Source {
	source := Source{Origin: s.Origin(), Notify: s.Notify, Unsure: s.Unsure, Read: s.ReadMany,
		Connect: func(ctx context.Context) (Connection, error) {
			c, err := s.Changes(ctx)
			if err != nil {
				return nil, err
			}
			return c, nil
		}}
	if s.Pooled() {
		source.Poll = pooledPoll
		return source
	}
	source.Listen = func(ctx context.Context) (Listener, error) {
		l, err := s.Listen(ctx)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	return source
}

// Connection reads changes. It is used by one goroutine at a time, and closed after the first error.
type Connection interface {
	// Start returns the highest row there is, if there is one, and the snapshot of the same statement.
	Start(ctx context.Context) (store.ChangePage, error)
	// Read returns what a position has not seen: every row of its open transactions, and at most limit rows
	// behind it.
	Read(ctx context.Context, from store.Position, limit int) (store.ChangePage, error)
	// Verify says which server this is, and how many of the rows that were read last it still has.
	Verify(ctx context.Context, last []store.ChangeRow) (store.Verification, error)
	Close()
}

// Listener hears wake-ups. It has LISTENed when it is returned. One goroutine uses it.
type Listener interface {
	// Wait returns the next notification. That its context ends harms nothing: what comes later is told by
	// the next call.
	Wait(ctx context.Context) (store.Notification, error)
	// Ping sends a notification to this listener itself.
	Ping(ctx context.Context) error
	Close()
}

// Positions keeps where consumers are, in the store that the change rows are in.
type Positions interface {
	// Take gives holder the lease of a consumer, or renews it, and returns where the consumer is; false
	// while somebody else holds it. A lease of 0 gives it back. The position is the zero one for a consumer
	// that is new, or when the server's timeline is not that of the last Move: it then starts with a Reset.
	Take(ctx context.Context, name, holder string, lease time.Duration) (store.Position, bool, error)
	// Move stores where the consumer is, durably (by a synchronous commit), or fails with [store.ErrLeaseLost].
	Move(ctx context.Context, name, holder string, to store.Position) error
}
