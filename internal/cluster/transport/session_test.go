package transport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model plays requests against a session and keeps what should become of them.
type model struct {
	t       *testing.T
	s       *session
	now     int64
	ended   map[int]string // by number of the request
	written map[int]bool
	ids     map[uint64]int
	order   []int // in which requests ended
}

func newModel(t *testing.T, limits Limits) *model {
	limits, err := limits.orDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(Peer{Name: "b", Epoch: 1}, &limits, &counters{})
	return &model{t: t, s: s, ended: map[int]string{}, written: map[int]bool{}, ids: map[uint64]int{}}
}

func (m *model) add(number int, r Request) *NotSentError {
	r.Body = []byte(fmt.Sprint(number))
	return m.s.add(&r, m.now, func(a Answer) {
		if m.ended[number] != "" {
			m.t.Fatalf("%d ended twice", number)
		}
		m.ended[number] = kindOf(a)
		m.order = append(m.order, number)
	})
}

func kindOf(a Answer) string {
	var notSent *NotSentError
	var lost *LostError
	var late *LateError
	switch {
	case a.Err == nil:
		return "answered " + string(a.Body)
	case errors.As(a.Err, &notSent):
		return "not sent"
	case errors.As(a.Err, &lost):
		return "lost"
	case errors.As(a.Err, &late) && late.Sent:
		return "late"
	case errors.As(a.Err, &late):
		return "late, not sent"
	}
	return "?"
}

func (m *model) tell(told []outcome) {
	for _, o := range told {
		o.done(o.a)
	}
}

func (m *model) write() (numbers []int) {
	frames, _ := m.s.take(nil, nil)
	for _, f := range frames {
		var number int
		fmt.Sscan(string(f.body), &number)
		numbers = append(numbers, number)
		m.ids[f.id] = number
		m.written[number] = true
	}
	return numbers
}

// C30
func TestPendingRequestsEndInTheOrderOfCallAndByWhetherTheyWereWritten(t *testing.T) {
	m := newModel(t, Limits{})
	for i := range 6 {
		m.add(i, Request{Class: Write})
	}
	m.write()
	for id, number := range m.ids { // frees slots in any order
		if number%2 == 0 {
			m.tell([]outcome{{m.s.answer(id), Answer{Body: []byte("x")}}})
		}
	}
	m.order = nil
	for i := 6; i < 12; i++ {
		m.add(i, Request{Class: Write})
	}
	m.tell(m.s.fail(nil, Broken, nil))
	if diff := cmp.Diff([]int{1, 3, 5, 6, 7, 8, 9, 10, 11}, m.order); diff != "" {
		t.Fatal(diff)
	}
	if m.ended[5] != "lost" || m.ended[6] != "not sent" || m.s.pending != 0 || len(m.s.queue) != 0 || m.s.bytes != 0 {
		t.Fatalf("%v, %+v", m.ended, m.s)
	}
}

// fault 17
func TestAnAnswerFindsOnlyTheRequestThatItIsFor(t *testing.T) {
	m := newModel(t, Limits{})
	m.add(0, Request{})
	if m.s.answer(1<<32) != nil {
		t.Fatal("an answer to a request that was not written")
	}
	frames, _ := m.s.take(nil, nil)
	id := frames[0].id
	if m.s.answer(id) == nil || m.s.answer(id) != nil {
		t.Fatal("one answer, once")
	}
	m.add(1, Request{}) // takes the same slot
	m.s.take(nil, nil)
	if m.s.answer(id) != nil || m.s.answer(7) != nil || m.s.answer(^uint64(0)) != nil {
		t.Fatal("an old or foreign id found a request")
	}
	if m.s.count.discarded != 5 || m.s.count.answered != 1 {
		t.Fatalf("%+v", m.s.count)
	}
}

// fault 17: exactly one outcome for each, in any sequence of events
func TestEveryRequestEndsOnceInAnySequenceOfEvents(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := newModel(t, Limits{QueueFrames: 20, Pending: 40})
		admitted, refused, number := map[int]bool{}, 0, 0
		for range 400 {
			switch rng.IntN(10) {
			case 0, 1, 2, 3:
				r := Request{Class: Class(rng.IntN(4)), Within: time.Duration(rng.IntN(3)) * 50}
				if m.add(number, r) == nil {
					admitted[number] = true
				} else {
					refused++
				}
				number++
			case 4, 5:
				for _, n := range m.write() {
					if m.ended[n] != "" {
						t.Fatalf("seed %d: %d was written after it ended as %s", seed, n, m.ended[n])
					}
				}
			case 6, 7:
				for range rng.IntN(6) {
					for id, n := range m.ids {
						delete(m.ids, id)
						if done := m.s.answer(id); done != nil {
							done(Answer{Body: fmt.Append(nil, n)})
						}
						break
					}
				}
			case 8:
				m.now += int64(rng.IntN(60))
				m.tell(m.s.expire(m.now))
			case 9:
				if rng.IntN(4) == 0 {
					m.tell(m.s.suspected())
				}
			}
		}
		m.tell(m.s.fail(nil, Broken, nil))
		for n := range admitted {
			want := m.ended[n]
			sent := want == "lost" || want == "late" || want == fmt.Sprint("answered ", n)
			if sent != m.written[n] || !sent && want != "not sent" && want != "late, not sent" {
				t.Fatalf("seed %d: %d ended as %q, written: %v", seed, n, want, m.written[n])
			}
		}
		c := m.s.count
		var notSent uint64
		for _, k := range c.refused {
			notSent += k
		}
		if got := c.answered + c.late + c.lost + notSent; got != uint64(len(admitted)) || len(m.ended) != len(admitted) || m.s.pending != 0 {
			t.Fatalf("seed %d: %d admitted, %d ended, %d refused, %+v", seed, len(admitted), got, refused, c)
		}
	}
}

// hub §3
func TestTheNextDeadlineIsNeverMissed(t *testing.T) {
	m := newModel(t, Limits{})
	for i, d := range []time.Duration{300, 0, 100, 200} {
		m.add(i, Request{Within: d})
	}
	for _, step := range []struct {
		now, next int64
		ended     int
	}{{99, 100, 0}, {100, 200, 1}, {250, 300, 2}, {1000, never, 3}} {
		m.tell(m.s.expire(step.now))
		if m.s.next != step.next || len(m.ended) != step.ended {
			t.Fatalf("at %d: next %d, ended %v", step.now, m.s.next, m.ended)
		}
	}
}

// protocol §1
func TestTheAccepterDecidesByVersionThenClusterThenEpochThenGeneration(t *testing.T) {
	own := welcome{version: 1, epoch: 5, cluster: "c", name: "b"}
	good := hello{version: 1, epoch: 9, generation: 3, target: 5, cluster: "c"}
	change := func(f func(*hello)) hello { h := good; f(&h); return h }
	for name, test := range map[string]struct {
		h        hello
		accepted uint64
		want     error
	}{
		"welcome":               {good, 2, nil},
		"another version":       {change(func(h *hello) { h.version, h.cluster = 2, "x" }), 0, &VersionError{1, 2}},
		"another cluster":       {change(func(h *hello) { h.cluster, h.target = "x", 6 }), 0, &ClusterError{"c", "x"}},
		"another epoch":         {change(func(h *hello) { h.target = 6 }), 9, &EpochError{6, 5}},
		"an older dial":         {good, 4, &StaleError{3, 4}},
		"the same dial":         {good, 3, &StaleError{3, 3}},
		"a dialler of no epoch": {change(func(h *hello) { h.epoch = 0 }), 0, &EpochError{5, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := own.judge(test.h, test.accepted)
			if diff := cmp.Diff(fmt.Sprint(test.want), fmt.Sprint(err)); diff != "" {
				t.Fatal(diff)
			}
			back := test.h.judge(w)
			if (back == nil) != (err == nil) {
				t.Fatalf("the accepter says %v, the dialler %v", err, back)
			}
		})
	}
	none := own
	none.epoch = 0
	if _, err := none.judge(change(func(h *hello) { h.target = 0 }), 0); err == nil {
		t.Fatal("a silo that is no member accepted a connection")
	}
}
