package claim

import (
	"fmt"
	"testing"
)

// actor is one of those who use a ledger at once: its steps run in order, between those of the others.
type actor struct {
	name  string
	steps []func(m *model)
}

// model is what a ledger's users see of each other.
type model struct {
	ledger   ledger
	in       map[string]bool
	inside   int
	disposed bool
	released int
	faults   []string
}

func (m *model) fault(what string) { m.faults = append(m.faults, what) }

func (m *model) release() {
	if m.released++; m.released > 1 {
		m.fault("released twice")
	}
	if !m.disposed {
		m.fault("released without disposal")
	}
	if m.inside > 0 {
		m.fault("released while a round is inside")
	}
}

func round(name string) actor {
	return actor{name, []func(*model){
		func(m *model) {
			if !m.ledger.enter() {
				if !m.disposed {
					m.fault("refused before disposal")
				}
				return
			}
			if m.disposed {
				m.fault("a round has begun after disposal")
			}
			m.in[name] = true
			m.inside++
		},
		func(m *model) { // the attach
			if m.in[name] && m.released > 0 {
				m.fault("attached after the release")
			}
		},
		func(m *model) {
			if !m.in[name] {
				return
			}
			m.inside--
			if m.ledger.leave() {
				m.release()
			}
		},
	}}
}

func disposer(name string) actor {
	return actor{name, []func(*model){func(m *model) {
		release := m.ledger.dispose()
		m.disposed = true
		if release {
			m.release()
		}
	}}}
}

// C20
func TestEveryInterleavingOfTwoRoundsAndTwoDisposalsReleasesOnceAfterTheLastRoundIsOut(t *testing.T) {
	covered := interleave([]actor{round("r1"), round("r2"), disposer("d1"), disposer("d2")}, func(order []string, m *model) {
		if m.released != 1 {
			m.fault(fmt.Sprintf("released %d times", m.released))
		}
		if len(m.faults) > 0 {
			t.Fatalf("%v: %v", order, m.faults)
		}
	})
	if covered != 1120 { // 8! / (3! 3! 1! 1!)
		t.Fatalf("%d interleavings, there are 1,120", covered)
	}
}

// C20: the same without a disposal: nothing is released.
func TestRoundsAloneReleaseNothing(t *testing.T) {
	covered := interleave([]actor{round("r1"), round("r2"), round("r3")}, func(order []string, m *model) {
		if m.released != 0 || len(m.faults) > 0 {
			t.Fatalf("%v: %v", order, m.faults)
		}
	})
	if covered != 1680 {
		t.Fatalf("%d interleavings, there are 1,680", covered)
	}
}

// interleave runs the actors in every order of their steps, from the start each time.
func interleave(actors []actor, check func([]string, *model)) int {
	covered := 0
	var walk func(schedule []int)
	walk = func(schedule []int) {
		at := make([]int, len(actors))
		for _, a := range schedule {
			at[a]++
		}
		over := true
		for a := range actors {
			if at[a] < len(actors[a].steps) {
				over = false
				walk(append(schedule[:len(schedule):len(schedule)], a))
			}
		}
		if !over {
			return
		}
		covered++
		m := &model{in: map[string]bool{}}
		next := make([]int, len(actors))
		var order []string
		for _, a := range schedule {
			order = append(order, actors[a].name)
			actors[a].steps[next[a]](m)
			next[a]++
		}
		check(order, m)
	}
	walk(nil)
	return covered
}
