package postgres

import (
	"context"
	"fmt"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
	"github.com/jackc/pgx/v5"
	"time"
)

// What tests look at.
var (
	ReadText     = readText
	ChildrenText = childrenText
)

const FeedBehindText, FeedOpenText = feedBehindText, feedOpenText

// Patient are options whose batches wait long for a row that something else holds.
func Patient(o Options) Options {
	o.patience = lockTimeout
	return o
}

// Restless are options with which the text index is filled without a rest.
func Restless(o Options) Options {
	o.restless = true
	return o
}

func (s *Store) PruneOlder(ctx context.Context, keep time.Duration) (int64, error) {
	return s.pruneOlder(ctx, keep)
}

var UpdateText, CreateText, DeleteText = updateText, createText, deleteText

func UpdateArgs(n int) []any {
	var l lists
	for i := range n {
		l.add(store.Write{Op: store.OpUpdate, Node: node.Node{Path: node.Path(fmt.Sprint("acme/n", i)), Version: 2, Content: node.RawContent(`{"a":1}`)}, Expected: 1})
	}
	_, args := unnest(2, l.written())
	return append([]any{"x"}, args...)
}

// AroundArgs are those of n creates on ground, or deletes that are to be empty.
func AroundArgs(op store.Op, n int) []any {
	p := part{op: op}
	for i := range n {
		p.add(i, store.Write{Op: op, Node: node.Node{Path: node.Path(fmt.Sprint("acme/n", i)), Version: 2}, Expected: 1,
			Ground: store.Ground{Path: "acme"}, Empty: true, Spare: []node.Path{"acme/n/_Access/x"}})
	}
	if op == store.OpCreate {
		_, args := unnest(2, p.lists.created())
		return append([]any{"x"}, args...)
	}
	_, args := unnest(2, p.lists.removed())
	return append(append([]any{"x"}, args...), p.spare)
}

const (
	OvertakenText = overtakenText
	MigrationLock = migrationLock
)

// CreateArgs are those of one create.
func CreateArgs(w store.Write) []any {
	p := part{op: store.OpCreate}
	p.add(0, w)
	_, args := unnest(2, p.lists.created())
	return append([]any{"x"}, args...)
}

// RemoveArgs are those of one delete.
func RemoveArgs(w store.Write) []any {
	p := part{op: store.OpDelete}
	p.add(0, w)
	_, args := unnest(2, p.lists.removed())
	return append(append([]any{"x"}, args...), p.spare)
}

// TakeLane and TakeReader take the connection that is left there, until it is given back.
func (s *Store) TakeLane(ctx context.Context) (giveBack func(), err error) {
	conn, err := s.lanes.Acquire(ctx)
	return func() { s.release(conn) }, err
}

func (s *Store) TakeReader(ctx context.Context) (giveBack func(), err error) {
	conn, err := s.reads.Acquire(ctx)
	return func() { conn.Release() }, err
}

// Suits refuses a server that can not keep a mesh.
func Suits(version int, encoding string, standby bool) error {
	return unavailable("open the database", suits(version, encoding, standby))
}

// Query asks the primary.
func (s *Store) Query(ctx context.Context, text string, args ...any) (pgx.Rows, error) {
	return s.writes.Query(ctx, text, args...)
}

// BothWays answers a query with the text index and without it, from one state of the store, and tells whether the index
// could say something.
func (s *Store) BothWays(ctx context.Context, q query.Query) (with, without []node.Node, used bool, err error) {
	err = pgx.BeginTxFunc(ctx, s.reads, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if _, used, err = s.found(ctx, tx, q.Bounds()); err != nil {
			return err
		}
		if with, err = s.selectIn(ctx, tx, q); err != nil {
			return err
		}
		without, err = store.Collect(q, candidatesOf(ctx, tx, q.Bounds(), false), s.options.ScanRows, s.options.ScanBytes)
		return err
	})
	return with, without, used, err
}

// Found is how many candidates the text index leaves of a query.
func (s *Store) Found(ctx context.Context, q query.Query) (n int, used bool, err error) {
	err = pgx.BeginTxFunc(ctx, s.reads, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		paths, ok, err := s.found(ctx, tx, q.Bounds())
		n, used = len(paths), ok
		return err
	})
	return n, used, err
}

// FoundText is the statement of the candidates.
func FoundText(q query.Query, at store.Position) (string, []any) {
	return foundText(q.Bounds(), gramsOf(q.Bounds().Texts), at, 200_001)
}
