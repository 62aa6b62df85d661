package feed

import (
	"fmt"
	"testing"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

func version(path node.Path, v int64) Invalidation {
	return Invalidation{Path: path, Kind: store.Updated, Version: v}
}

func (q *queue) drain() string {
	text := ""
	for {
		i, ok := q.pop()
		switch {
		case !ok:
			return text
		case i.Reset:
			text += "reset "
		default:
			text += fmt.Sprintf("%s%d ", i.Path, i.Version)
		}
	}
}

// storage §6
func TestAQueueHoldsTheNewestOfEachPathAtThePlaceOfItsOldest(t *testing.T) {
	t.Parallel()
	q := newQueue(3)
	q.push(version("a", 1), false)
	q.push(version("b", 1), false)
	q.push(version("a", 2), false)
	q.push(version("c", 1), false)
	if got := q.drain(); got != "a2 b1 c1 " {
		t.Error(got)
	}
}

// storage §6
func TestAFullQueueIsAResetAndWhatComesAfterIt(t *testing.T) {
	t.Parallel()
	q := newQueue(2)
	q.push(version("a", 1), false)
	q.push(version("b", 1), true) // a writer waits for it
	if q.push(version("a", 2), false) || !q.push(version("c", 1), false) {
		t.Error("the bound is not kept")
	}
	q.push(version("d", 1), false)
	if _, ok := q.take("a"); ok {
		t.Error("'a' is told beside the reset")
	}
	if i, ok := q.take("b"); !ok || i.Version != 1 {
		t.Error("the writer waits for nothing")
	}
	if got := q.drain(); got != "reset c1 d1 " && got != "reset d1 " {
		t.Error(got)
	}
	if q.len() != 0 || q.order.Len() != 0 {
		t.Error("something is left")
	}
}

func TestWhatNoWriterWaitsForAnyMoreIsGivenUpForAReset(t *testing.T) {
	t.Parallel()
	q := newQueue(2)
	for i := range 100 {
		path := node.Path(fmt.Sprint("p", i))
		q.push(version(path, 1), true)
		q.leave(path)
		if q.len() > 2 {
			t.Fatal(q.len())
		}
	}
}
