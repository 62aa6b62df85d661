package hubmesh

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hubmesh/hubmesh/internal/feed"
	"github.com/hubmesh/hubmesh/internal/store/postgres"
)

// search fills the text index of the database, in whichever process holds the lease of it.
func (f *shared) search() {
	if err := f.index.Prepare(f.ctx); err != nil && f.ctx.Err() == nil {
		f.log.Warn("whether the text index is of this program was not looked at; it is at the next change", "error", err)
	}
	f.feed.Consumer(postgres.SearchConsumer, f.store.Positions(), func(ctx context.Context, b feed.Batch) error {
		return f.index.Apply(ctx, b.Reset, b.Rows)
	})
}

// lookAtSearch notes how the text index stands, whoever fills it.
func (f *shared) lookAtSearch() {
	state, err := f.store.Search(f.ctx)
	if err != nil {
		f.searched.Store(nil) // what keeps the server from answering is told elsewhere
		return
	}
	f.searched.Store(&state)
}

// searchFamilies are the metrics of the text index of a shared database.
var searchFamilies = []family{
	{"search_whole", "1 while text queries go by the text index, 0 while they look at all nodes, as until everything was indexed once; looked at every 10 s.", nil},
	{"search_behind_seconds", "Since the oldest change that the text index does not hold yet; what it does not hold is looked at besides.", nil},
	{"search_indexed_total", "Nodes that this process has indexed.", nil},
	{"search_rebuilds_total", "Times that this process compared the text index with all nodes.", nil},
}

func (m *Mesh) searchMetrics() prometheus.Collector {
	return newFamilies(searchFamilies, func(f *families) {
		if s := m.shared.searched.Load(); s != nil {
			f.gauge("search_whole", truth(s.Whole))
			if s.Followed {
				f.gauge("search_behind_seconds", s.Behind.Seconds())
			}
		}
		done := m.shared.index.Stats()
		f.count("search_indexed_total", done.Indexed)
		f.count("search_rebuilds_total", done.Rebuilds)
	})
}

// searchStatus is how the text index stands, as it was seen last.
type searchStatus struct {
	Whole    bool  `json:"whole"`
	BehindMS int64 `json:"behindMs"`
}

func (f *shared) describeSearch() *searchStatus {
	s := f.searched.Load()
	if s == nil {
		return nil
	}
	return &searchStatus{Whole: s.Whole, BehindMS: s.Behind.Milliseconds()}
}
