package nodehub_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/query"
)

func mustQuery(t *testing.T, text string) query.Query {
	t.Helper()
	q, err := query.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// bad input: one caller with many dear queries
func TestTheQueriesOfOneSubjectLeaveRoomForThoseOfOthers(t *testing.T) {
	r := newRig(t)
	for _, who := range []string{"greedy", "modest"} {
		if err := r.c.Grant(r.root, "", who, "Viewer"); err != nil {
			t.Fatal(err)
		}
	}
	q := mustQuery(t, "scope:subtree name:x")
	var running, most atomic.Int64
	release, entered := make(chan struct{}), make(chan struct{}, 100)
	park := func() {
		most.Store(max(most.Load(), running.Add(1)))
		entered <- struct{}{}
		<-release
		running.Add(-1)
	}
	r.store.mu.Lock()
	r.store.onSelect = park
	r.store.mu.Unlock()
	greedy := message.WithIdentity(t.Context(), &message.Identity{Subject: "greedy"})
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if _, err := r.c.Select(greedy, q); err != nil {
				t.Error(err)
			}
		})
	}
	each := max(2, runtime.GOMAXPROCS(0)) / 2
	for range each {
		<-entered
	}
	modest := message.WithIdentity(t.Context(), &message.Identity{Subject: "modest"})
	done := make(chan error, 1)
	go func() {
		_, err := r.c.Select(modest, q)
		done <- err
	}()
	<-entered // the modest one runs beside the others' eight
	if n := running.Load(); n > int64(max(2, runtime.GOMAXPROCS(0))) {
		t.Errorf("%d queries run at a time", n)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	work.Wait()
}

// bad input: a visitor without any grant
func TestNothingIsScannedForWhoMayReadNothing(t *testing.T) {
	r := newRig(t)
	r.store.mu.Lock()
	r.store.onSelect = func() { t.Error("the store was asked") }
	r.store.mu.Unlock()
	for _, ctx := range []*message.Identity{{Subject: message.SubjectAnonymous}, nil} {
		rows, err := r.c.Select(message.WithIdentity(t.Context(), ctx), mustQuery(t, "scope:subtree"))
		if len(rows) != 0 || err != nil && !errors.As(err, new(*message.Failure)) {
			t.Errorf("%v %v", rows, err)
		}
	}
}
