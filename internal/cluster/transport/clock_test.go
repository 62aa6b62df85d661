package transport_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func TestAClockRunsEverythingInOrderOnOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := transport.NewClock()
		defer c.Close()
		var ran []int // without a lock: the race detector sees a second goroutine
		note := func(n int) func() { return func() { ran = append(ran, n) } }
		for i := range 100 {
			c.At(c.Now()+time.Second, note(1000+i))
		}
		c.At(c.Now()+2*time.Second, note(3000))
		c.At(c.Now()+time.Millisecond, func() {
			note(1)()
			c.At(c.Now(), note(2))
		})
		stop := c.At(c.Now()+1500*time.Millisecond, note(-1))
		if !stop() {
			t.Error("what has not run could not be stopped")
		}
		<-time.After(3 * time.Second) // virtual
		synctest.Wait()
		want := []int{1, 2}
		for i := range 100 {
			want = append(want, 1000+i)
		}
		if want = append(want, 3000); !slices.Equal(ran, want) {
			t.Errorf("ran %v; want %v", ran, want)
		}
		if stop() {
			t.Error("what was stopped was stopped again")
		}
	})
}
