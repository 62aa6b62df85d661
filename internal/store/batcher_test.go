package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
)

func queued(path string, version int64, bulk bool) *entry {
	w := Write{Op: OpUpdate, Node: node.Node{Path: node.Path(path), Version: version}}
	return &entry{write: w, bulk: bulk, bytes: 100}
}

func add(t *testing.T, b *batcher, entries ...*entry) {
	t.Helper()
	if !b.add(entries...) {
		t.Fatal("overloaded")
	}
}

func fill(t *testing.T, b *batcher, n int, prefix string, bulk bool) {
	t.Helper()
	for i := range n {
		add(t, b, queued(fmt.Sprint(prefix, i), 1, bulk))
	}
}

func content(batch []*entry) (paths []string) {
	for _, e := range batch {
		paths = append(paths, fmt.Sprintf("%s@%d", e.write.Node.Path, e.write.Node.Version))
	}
	return paths
}

// architecture.md decision 9, storage.md §8.11
func TestAPathStandsInABatchOnceAndItsNextWriteWaits(t *testing.T) {
	t.Parallel()
	b := newBatcher(CommitterOptions{})
	add(t, b, queued("x", 1, false), queued("x", 2, true), queued("y", 1, false), queued("x", 3, false))
	for _, want := range [][]string{{"x@1", "y@1"}, {"x@2"}, {"x@3"}, nil} {
		batch := b.take()
		if got := content(batch); !slices.Equal(got, want) {
			t.Fatalf("got %q; want %q", got, want)
		}
		if other := b.take(); other != nil {
			t.Fatalf("%q is taken while %q is being committed", content(other), want)
		}
		b.done(batch)
	}
	if !b.idle() || b.waiting != (load{}) || b.waitingBulk != (load{}) {
		t.Errorf("not idle: %+v", b)
	}
}

// storage.md §7: no linger, at most 128; chunks of at most 500, at most 50 while others wait
func TestABatchTakesWhatIsReadyWithinTheBoundsOfItsClasses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ singles, bulks, wantSingles, wantBulks int }{
		{1, 0, 1, 0}, {128, 0, 128, 0}, {129, 0, 128, 0}, {0, 500, 0, 500}, {0, 700, 0, 500}, {1, 700, 1, 50}, {300, 700, 128, 50}, {3, 20, 3, 20},
	} {
		b := newBatcher(CommitterOptions{})
		fill(t, b, c.bulks, "bulk", true)
		fill(t, b, c.singles, "single", false)
		bulks := 0
		batch := b.take()
		for _, e := range batch {
			if e.bulk {
				bulks++
			}
		}
		if singles := len(batch) - bulks; singles != c.wantSingles || bulks != c.wantBulks {
			t.Errorf("of %d single and %d bulk writes a batch takes %d and %d", c.singles, c.bulks, singles, bulks)
		}
	}
}

func TestABatchIsBoundedInBytesButTakesAtLeastOneRow(t *testing.T) {
	t.Parallel()
	b := newBatcher(CommitterOptions{BatchBytes: 1000})
	large := queued("large", 1, false)
	large.bytes = 5000
	add(t, b, large)
	fill(t, b, 15, "n", false)
	for _, want := range []int{1, 10, 5} {
		batch := b.take()
		if len(batch) != want {
			t.Errorf("a batch has %d rows; want %d", len(batch), want)
		}
		b.done(batch)
	}
}

func TestTheQueueIsBoundedInRowsAndBytes(t *testing.T) {
	t.Parallel()
	b := newBatcher(CommitterOptions{QueueRows: 10, QueueBytes: 2000})
	huge := queued("huge", 1, false)
	huge.bytes = 9999
	add(t, b, huge)
	if b.add(queued("x", 1, false)) {
		t.Error("bytes have no bound")
	}
	b.done(b.take())
	fill(t, b, 10, "n", false)
	if b.add(queued("x", 1, false)) || b.add(queued("n1", 2, false)) {
		t.Error("rows have no bound")
	}
	batch := b.take()
	add(t, b, queued("x", 1, false), queued("n1", 2, false)) // what is being committed does not count
	b.done(batch)
	if got := content(b.take()); !slices.Equal(got, []string{"x@1", "n1@2"}) {
		t.Errorf("got %q", got)
	}
}

func TestBulkWritesFillHalfOfTheQueueAndComeInWhole(t *testing.T) {
	t.Parallel()
	b := newBatcher(CommitterOptions{QueueRows: 10})
	add(t, b, queued("a", 1, true), queued("b", 1, true), queued("c", 1, true))
	if b.add(queued("d", 1, true), queued("e", 1, true), queued("f", 1, true)) {
		t.Error("bulk writes fill more than half")
	}
	fill(t, b, 7, "n", false)
	if got := len(b.take()); got != 10 {
		t.Errorf("%d rows: a refused chunk is queued in part", got)
	}
}

func TestWhateverTheOrderEveryWriteIsTakenOnceAndPathsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newBatcher(CommitterOptions{QueueRows: 60, BatchRows: 5, BulkRows: 7, BulkBeside: 2, BatchBytes: 700})
		version := map[node.Path]int64{} // last one queued
		taken := map[node.Path]int64{}
		busy := map[node.Path]bool{}
		var running [][]*entry
		rows := 0
		for step := 0; step < 400 || rows > 0; step++ {
			switch choice := random.IntN(4); {
			case choice < 2 && step < 400:
				path := node.Path(fmt.Sprint("p", random.IntN(12)))
				if b.add(queued(string(path), version[path]+1, random.IntN(2) == 0)) {
					version[path]++
					rows++
				}
			case choice == 2 && len(running) < 3:
				batch := b.take()
				for _, e := range batch {
					path := e.write.Node.Path
					if busy[path] || e.write.Node.Version != taken[path]+1 {
						t.Fatalf("seed %d: %s@%d after %d, being committed: %v", seed, path, e.write.Node.Version, taken[path], busy[path])
					}
					busy[path], taken[path] = true, taken[path]+1
				}
				if batch != nil {
					running = append(running, batch)
				}
			case len(running) > 0:
				i := random.IntN(len(running))
				for _, e := range running[i] {
					busy[e.write.Node.Path] = false
					rows--
				}
				b.done(running[i])
				running = slices.Delete(running, i, i+1)
			}
		}
		for path, last := range version {
			if taken[path] != last {
				t.Fatalf("seed %d: of %d writes of %s %d were taken", seed, last, path, taken[path])
			}
		}
		if !b.idle() || b.waiting != (load{}) {
			t.Fatalf("seed %d: not idle", seed)
		}
	}
}
