package store_test

import (
	"strings"
	"testing"

	"github.com/hubmesh/hubmesh/internal/store"
)

// data §2.2, invariant 42
func TestAPanicOfASubscriberIsCountedAndReported(t *testing.T) {
	t.Parallel()
	var reported any
	var stack string
	f := store.Fanout{OnPanic: func(value any, s []byte) { reported, stack = value, string(s) }}
	f.Subscribe(func(c store.Change) {
		if c.Version == 1 {
			panic("broken")
		}
	})
	var got []int64
	f.Subscribe(func(c store.Change) { got = append(got, c.Version) })
	f.Publish([]store.Change{{Version: 1}, {Version: 2}})
	if len(got) != 2 || f.Panics() != 1 || reported != "broken" || !strings.Contains(stack, "fanout_test") {
		t.Errorf("%v, %d, %v", got, f.Panics(), reported)
	}
}

func TestASubscriberThatJoinsDuringAPublicationIsToldFromTheNextOne(t *testing.T) {
	t.Parallel()
	var f store.Fanout
	var late []int64
	joined := false
	f.Subscribe(func(store.Change) {
		if !joined {
			joined = true
			f.Subscribe(func(c store.Change) { late = append(late, c.Version) })
		}
	})
	f.Publish([]store.Change{{Version: 1}, {Version: 2}})
	f.Publish([]store.Change{{Version: 3}})
	if len(late) != 1 || late[0] != 3 {
		t.Errorf("got %v", late)
	}
}
