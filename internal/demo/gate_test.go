package demo

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestWhatReachesAFrozenSiloHappensAtTheThawInItsOrder(t *testing.T) {
	g := newGate()
	var ran []int
	note := func(n int) func() { return func() { ran = append(ran, n) } }
	g.run(note(1))
	g.freeze()
	g.run(note(2))
	g.run(func() {
		note(3)()
		if err := g.pass(t.Context()); err != nil { // what runs at the thaw may use the store
			t.Error(err)
		}
		g.run(note(5)) // behind what has waited before it
	})
	g.run(note(4))
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("late")
	cancel(late)
	if err := g.pass(ctx); !errors.Is(err, late) || !slices.Equal(ran, []int{1}) {
		t.Fatalf("a frozen gate was passed with %v; ran %v", err, ran)
	}
	if !g.thaw() || g.settle(t.Context()) != nil || !slices.Equal(ran, []int{1, 2, 3, 4, 5}) {
		t.Errorf("ran %v", ran)
	}
	g.run(note(6))
	if ran[len(ran)-1] != 6 {
		t.Error("an open gate has waited")
	}
}

func TestNothingOfAKilledSiloHappensAnyMore(t *testing.T) {
	g := newGate()
	ran := 0
	g.freeze()
	g.run(func() { ran++ })
	passed := make(chan error)
	go func() { passed <- g.pass(t.Context()) }()
	g.kill()
	g.kill()
	g.run(func() { ran++ })
	g.thaw()
	if err := <-passed; !errors.Is(err, errKilled) || ran != 0 {
		t.Errorf("whoever waited was told %v, and %d of what waited ran", err, ran)
	}
	if err := g.pass(t.Context()); !errors.Is(err, errKilled) {
		t.Errorf("it is passed with %v", err)
	}
}

func TestASiloThatWasFrozenForTooLongSaysSo(t *testing.T) {
	g := newGate()
	g.freeze()
	for range maxBacklog + 1 {
		g.run(func() { t.Error("a part of what was missed was run") })
	}
	if g.thaw() {
		t.Error("it thaws, and has missed something")
	}
}
