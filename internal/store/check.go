package store

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
)

// Bounds of the side table.
const (
	MaxBlobKey   = 1024
	MaxBlobValue = 64 << 10
)

// MaxVersion is the last version that a node can have; its deletion is one above. Only another program can come near it.
const MaxVersion = 1 << 62

// Bounds of a listing.
const (
	DefaultPage  = 1000
	MaxPage      = 10_000
	DefaultTrail = 100
	MaxTrail     = 1000
)

// DefaultHistory is the number of versions that a store keeps of a node, unless configured.
const DefaultHistory = 1000

// Default bounds of a query.
const (
	DefaultScanRows  = 200_000
	DefaultScanBytes = 256 << 20
)

// Size returns the limit of the page within its bounds.
func (p Page) Size() int { return bounded(p.Limit, DefaultPage, MaxPage) }

// Size returns the limit of the page within its bounds.
func (p VersionPage) Size() int { return bounded(p.Limit, DefaultTrail, MaxTrail) }

func bounded(limit, standard, most int) int {
	if limit <= 0 {
		return standard
	}
	return min(limit, most)
}

// Normalize returns the write as a store keeps it: the main node defaults to the path's own, times are
// UTC in microseconds. It refuses, with *[RowError], what no store can keep: a row without a path, a
// path that is too long, text that is not UTF-8 or holds a NUL, an unknown operation. Implementations
// call it for each row of a batch.
func Normalize(w Write) (Write, error) {
	if w.Node.MainNode == "" {
		w.Node.MainNode = w.Node.Path.Main()
	}
	w.Ground.Born = node.Stamp(w.Ground.Born)
	w.Node.CreatedAt, w.Node.ModifiedAt = node.Stamp(w.Node.CreatedAt), node.Stamp(w.Node.ModifiedAt)
	return w, checkRow(w)
}

func checkRow(w Write) error {
	n := w.Node
	fault := func(format string, args ...any) error {
		return &RowError{Path: n.Path, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case w.Op < OpCreate || w.Op > OpDelete:
		return fault("unknown operation %d", w.Op)
	case n.Path == "":
		return fault("the root scope holds no node")
	case n.Version > MaxVersion && w.Op != OpDelete:
		return fault("it is at the last version there can be; put the version of its row right with SQL")
	case len(n.Path) > node.MaxPathBytes || len(n.MainNode) > node.MaxPathBytes:
		return fault("a path has more than %d bytes", node.MaxPathBytes)
	}
	texts := [...]string{
		string(n.Path), string(n.MainNode), n.NodeType, n.Name, n.Description, n.Category, n.Icon,
		n.PreRenderedHTML, n.Content.Text(), n.CreatedBy, n.ModifiedBy, n.DesiredID,
	}
	for _, text := range texts {
		if !isText(text) {
			return fault("a text is not valid UTF-8 or holds a NUL")
		}
	}
	for _, context := range n.ExcludeFromContext {
		if !isText(context) {
			return fault("a text is not valid UTF-8 or holds a NUL")
		}
	}
	return nil
}

// CheckBlob refuses a key or value that does not fit the side table.
func CheckBlob(bucket, key string, value []byte) error {
	switch {
	case bucket == "" || key == "":
		return errors.New("store: a blob needs a bucket and a key")
	case len(bucket) > MaxBlobKey || len(key) > MaxBlobKey:
		return fmt.Errorf("store: a bucket or key has more than %d bytes", MaxBlobKey)
	case !isText(bucket) || !isText(key):
		return errors.New("store: a bucket or key is not valid UTF-8 or holds a NUL")
	case len(value) > MaxBlobValue:
		return fmt.Errorf("store: the value of '%s/%s' has %d bytes; %d are allowed", bucket, key, len(value), MaxBlobValue)
	}
	return nil
}

func isText(text string) bool {
	return strings.IndexByte(text, 0) < 0 && utf8.ValidString(text)
}

// Collect runs q over candidates with both bounds of a store, rows it looks at and bytes it returns, and the
// query's own on its work. Beyond them it answers *[ScanLimitError].
func Collect(q query.Query, candidates iter.Seq2[node.Node, error], maxRows, maxBytes int) ([]node.Node, error) {
	rows := 0
	nodes, err := q.Collect(func(yield func(node.Node, error) bool) {
		for n, err := range candidates {
			if rows++; rows > maxRows && err == nil {
				yield(node.Node{}, &ScanLimitError{Rows: maxRows})
				return
			}
			if !yield(n, err) {
				return
			}
		}
	}, maxBytes)
	if tooLarge := (*query.SizeError)(nil); errors.As(err, &tooLarge) {
		return nil, &ScanLimitError{Bytes: maxBytes}
	}
	if dear := (*query.WorkError)(nil); errors.As(err, &dear) {
		return nil, &ScanLimitError{Work: dear.Bytes}
	}
	return nodes, err
}

// HistoryStep is how often a store prunes: when a node's version is a multiple of it.
func HistoryStep(keep int) int64 { return int64(max(1, keep/16)) }
