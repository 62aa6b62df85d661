package budget

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// C-7
func TestTheDefaultTableIsInOrder(t *testing.T) {
	table := Defaults()
	if err := table.Check(); err != nil {
		t.Fatal(err)
	}
}

// C-7
func TestTheKnownInversionsAreSharedWorkOnly(t *testing.T) {
	table := Defaults()
	for _, p := range known {
		if table.Own(p[0]) >= table.Own(p[1]) {
			t.Errorf("'%s' is no longer shorter than '%s': take the pair off the list", p[0], p[1])
		}
		if p[1] != Defer && !p[1].Work() {
			t.Errorf("'%s' outlives '%s' and is not shared work", p[1], p[0])
		}
	}
}

// fault 45
func TestATableWithAnInnerBoundNotSmallerThanItsOuterIsRefusedByName(t *testing.T) {
	table := Defaults().With(Read, 90*time.Second).With(Commit, 0)
	err := table.Check()
	var order *OrderError
	if !errors.As(err, &order) || order.Inner != Read || order.Outer != Request {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "'commit' must be positive") {
		t.Fatalf("only the first fault is told: %v", err)
	}
}

// RB-1
func TestTheReadBoundIsTenSecondsInsideTheRequestBound(t *testing.T) {
	table := Defaults()
	if table.Own(Read) != 10*time.Second || table.Own(Request) != 60*time.Second {
		t.Fatal(table.Own(Read), table.Own(Request))
	}
}

// hub §3
func TestAnInnerWaitLeavesItsCallerAMargin(t *testing.T) {
	table := Defaults()
	outer, err := table.Take(Budget{}, 1, Read)
	if err != nil || outer.By != Read || outer.Deadline != 1+int64(10*time.Second) {
		t.Fatalf("%+v %v", outer, err)
	}
	inner, err := table.Take(outer, 1, Initialise)
	if err != nil || inner.By != Read || inner.Bound != Initialise {
		t.Fatalf("%+v %v", inner, err)
	}
	if got := time.Duration(outer.Deadline - inner.Deadline); got != 250*time.Millisecond {
		t.Fatalf("margin %v", got)
	}
	if short, err := table.Take(outer, 1, StoreRead); err != nil || short.By != StoreRead {
		t.Fatalf("a shorter own bound was clipped: %+v %v", short, err)
	}
	for remaining, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 20 * time.Millisecond, 2 * time.Second: 50 * time.Millisecond, time.Minute: 250 * time.Millisecond,
	} {
		if got := Margin(remaining); got != want {
			t.Errorf("margin of %v is %v", remaining, got)
		}
	}
}

// hub §3
func TestAStepWithTooLittleLeftIsRefusedWithTheNameOfTheClippingBound(t *testing.T) {
	table := Defaults()
	b := Budget{Deadline: int64(100 * time.Millisecond), Bound: Read, By: Read}
	_, err := table.Take(b, int64(80*time.Millisecond), StoreRead)
	var small *TooSmall
	if !errors.As(err, &small) || small.By != Read || small.Remaining != 20*time.Millisecond {
		t.Fatalf("got %v", err)
	}
}

// hub §3
func TestAHopAllocatesNothing(t *testing.T) {
	table := Defaults()
	outer, _ := table.Take(Budget{}, 1, Read)
	clock := NewClock()
	if n := testing.AllocsPerRun(100, func() {
		if b, err := table.Take(outer, clock.Now(), StoreRead); err != nil || b.Deadline == 0 {
			t.Fail()
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// fault 45
func TestABoundedContextSaysWhichBoundFired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := Defaults()
		ctx, cancel := table.Context(t.Context(), StoreRead, "read row")
		defer cancel()
		<-ctx.Done()
		var lapse *Lapse
		if !errors.As(context.Cause(ctx), &lapse) || lapse.By != StoreRead || lapse.Operation != "read row" {
			t.Fatalf("cause %v", context.Cause(ctx))
		}
		if !errors.Is(lapse, context.DeadlineExceeded) || !lapse.Timeout() {
			t.Fatal("a timeout classifier does not know it")
		}
	})
}

func BenchmarkHop(b *testing.B) {
	table := Defaults()
	clock := NewClock()
	outer, _ := table.Take(Budget{}, clock.Now(), Teardown)
	b.ReportAllocs()
	for b.Loop() {
		outer.Deadline = clock.Now() + int64(time.Minute)
		if _, err := table.Take(outer, clock.Now(), StoreRead); err != nil {
			b.Fatal(err)
		}
	}
}
