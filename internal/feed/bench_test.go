package feed

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

func pageOf(n int) []store.ChangeRow {
	rows := make([]store.ChangeRow, n)
	for i := range rows {
		rows[i] = store.ChangeRow{XID: uint64(i + 1), Pos: int64(i + 1), Version: 1, Kind: store.Updated, Path: node.Path(fmt.Sprint("acme/p", i)), Origin: "other"}
	}
	return rows
}

// From a page of the database to three subscribers; issue: at least 200,000 rows/s behind.
func BenchmarkRowsToThreeSubscribers(b *testing.B) {
	r := NewRelay(nil, slog.New(slog.DiscardHandler))
	defer r.Close()
	r.follow(func() {})
	for range 3 {
		r.Invalidations("cache", func(Invalidation) {})
	}
	rows := pageOf(pageRows)
	for b.Loop() {
		r.rows(rows, 0, "own", nil)
	}
	b.ReportMetric(float64(b.N)*pageRows/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkReaderOnAMillionRowsBehind(b *testing.B) {
	page := store.ChangePage{Rows: pageOf(pageRows), Cut: true}
	for b.Loop() {
		r := newReader("own")
		r.step(opened{})
		r.step(verified{})
		r.step(started{})
		r.step(woken{})
		for range 100 {
			r.step(arrived{page: page})
		}
		r.step(arrived{})
	}
	b.ReportMetric(float64(b.N)*100*pageRows/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkPublishToThreeSubscribers(b *testing.B) {
	r := NewRelay(nil, slog.New(slog.DiscardHandler))
	defer r.Close()
	for range 3 {
		r.Invalidations("cache", func(Invalidation) {})
	}
	c := store.Change{Kind: store.Updated, Path: "acme/p"}
	for b.Loop() {
		c.Version++
		r.Publish(c)
	}
}
