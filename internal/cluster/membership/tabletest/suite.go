// Package tabletest proves the rules of a membership table (protocol.md §2) on any implementation.
package tabletest

import (
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/membership"
)

// World is one table.
type World interface {
	// Client is the table as one silo uses it.
	Client(t *testing.T) membership.Table
	// Age makes a member's last heartbeat older, by that much.
	Age(t *testing.T, e membership.Epoch, by time.Duration)
}

// Run proves the rules on the tables that open makes.
func Run(t *testing.T, open func(t *testing.T) World) {
	for name, rule := range map[string]func(bench){
		"a join, a leave and an end each raise the key":                       raises,
		"a silo that comes back replaces its own row, by name and by address": replaces,
		"a join removes the stale rows it names, and no fresh one":            stale,
		"two votes remove a member, one of two where there is no other":       votes,
		"the vote of who has no row does not count":                           strangers,
		"votes for an epoch that is gone change nothing":                      lateVotes,
		"a heartbeat keeps a row fresh and tells the key":                     beats,
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			rule(bench{t, w, w.Client(t)})
		})
	}
}

type bench struct {
	*testing.T
	World
	table membership.Table
}

func await[T any](t *testing.T, call func(done func(T, error))) (T, error) {
	t.Helper()
	type outcome struct {
		value T
		err   error
	}
	ends := make(chan outcome, 1)
	call(func(v T, err error) { ends <- outcome{v, err} })
	o := <-ends
	return o.value, o.err
}

func (b bench) join(name string, e membership.Epoch, stale ...membership.Epoch) *membership.View {
	b.Helper()
	v, err := await(b.T, func(done func(*membership.View, error)) {
		b.table.Join(membership.Member{Name: name, Epoch: e, Addr: name + ":1", Types: []string{"Task"}}, stale, done)
	})
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func (b bench) view() *membership.View {
	b.Helper()
	v, err := await(b.T, b.table.View)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func (b bench) vote(target string, e, voter membership.Epoch) error {
	b.Helper()
	_, err := await(b.T, func(done func(struct{}, error)) {
		b.table.Vote(membership.Member{Name: target, Epoch: e}, voter, func(err error) { done(struct{}{}, err) })
	})
	return err
}

func (b bench) gone(e membership.Epoch) {
	b.Helper()
	if _, err := await(b.T, func(done func(struct{}, error)) { b.table.Gone(e, func(err error) { done(struct{}{}, err) }) }); err != nil {
		b.Fatal(err)
	}
}

// has checks who is in the view.
func (b bench) has(v *membership.View, epochs ...membership.Epoch) {
	b.Helper()
	if len(v.Members()) != len(epochs) {
		b.Fatalf("the view is %v, wanted are %v", v, epochs)
	}
	for _, e := range epochs {
		if !v.Has(e) {
			b.Fatalf("the view is %v, wanted are %v", v, epochs)
		}
	}
}

const high = membership.Epoch(1<<63 + 7) // epochs use all 64 bits

func raises(b bench) {
	first := b.join("a", high)
	b.has(first, high)
	second := b.join("b", 2)
	b.has(second, high, 2)
	left, err := await(b.T, func(done func(*membership.View, error)) { b.table.Leave(2, done) })
	if err != nil {
		b.Fatal(err)
	}
	b.has(left, high, 2)
	for _, m := range left.Members() {
		if m.Leaving != (m.Epoch == 2) || len(m.Types) != 1 || m.Types[0] != "Task" || m.Addr != m.Name+":1" {
			b.Errorf("%+v", m)
		}
	}
	b.gone(2)
	last := b.view()
	b.has(last, high)
	keys := []membership.Key{first.Key(), second.Key(), left.Key(), last.Key()}
	for i := 1; i < len(keys); i++ {
		if keys[i].Compare(keys[i-1]) <= 0 {
			b.Errorf("keys %v", keys)
		}
	}
	b.gone(2)
	if b.view().Key() != last.Key() {
		b.Error("an end that is none raised the key")
	}
}

func replaces(b bench) {
	b.join("a", 1)
	b.has(b.join("a", 2), 2)
	v, err := await(b.T, func(done func(*membership.View, error)) {
		b.table.Join(membership.Member{Name: "other", Epoch: 3, Addr: "a:1"}, nil, done)
	})
	if err != nil {
		b.Fatal(err)
	}
	b.has(v, 3)
	if m := v.Members()[0]; m.Types != nil {
		b.Errorf("a silo without a list handles all types, and came back with %v", m.Types)
	}
}

func stale(b bench) {
	b.join("old", 1)
	b.join("young", 2)
	b.Age(b.T, 1, 2*membership.Fresh)
	rows, err := await(b.T, b.table.Read)
	if err != nil || len(rows) != 2 || rows[0].Fresh || !rows[1].Fresh {
		b.Fatalf("%+v %v", rows, err)
	}
	b.has(b.join("new", 3, 1, 2), 2, 3)
}

func votes(b bench) {
	b.join("a", 1)
	b.join("b", 2)
	b.join("c", 3)
	if err := b.vote("c", 3, 1); err != nil {
		b.Fatal(err)
	}
	b.has(b.view(), 1, 2, 3)
	if err := b.vote("c", 3, 1); err != nil { // the same voter again
		b.Fatal(err)
	}
	b.has(b.view(), 1, 2, 3)
	if err := b.vote("c", 3, 2); err != nil {
		b.Fatal(err)
	}
	b.has(b.view(), 1, 2)
	if err := b.vote("b", 2, 1); err != nil { // alone with it
		b.Fatal(err)
	}
	b.has(b.view(), 1)
	// Two of three died together: the heartbeat of the other one is old.
	b.join("d", 4)
	b.join("e", 5)
	b.Age(b.T, 4, 2*membership.Fresh)
	if err := b.vote("e", 5, 1); err != nil {
		b.Fatal(err)
	}
	b.has(b.view(), 1, 4)
}

func strangers(b bench) {
	b.join("a", 1)
	b.join("b", 2)
	_ = b.vote("a", 1, 99) // refused, or without effect
	b.gone(2)
	_ = b.vote("a", 1, 2)
	b.has(b.view(), 1)
}

func lateVotes(b bench) {
	b.join("a", 1)
	b.join("b", 2)
	b.join("b", 3) // it came back
	before := b.view().Key()
	if err := b.vote("b", 2, 1); err != nil {
		b.Fatal(err)
	}
	if v := b.view(); v.Key() != before || !v.Has(3) {
		b.Errorf("%v", v)
	}
}

func beats(b bench) {
	v := b.join("a", 1)
	b.Age(b.T, 1, 2*membership.Fresh)
	key, err := await(b.T, func(done func(membership.Key, error)) { b.table.Beat(1, done) })
	if err != nil || key != v.Key() {
		b.Fatal(key, err)
	}
	rows, err := await(b.T, b.table.Read)
	if err != nil || len(rows) != 1 || !rows[0].Fresh {
		b.Fatalf("%+v %v", rows, err)
	}
}
