package transporttest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster/transport"
)

func runStress(t *testing.T, rig Rig) {
	s := suite{t, rig}
	s.Run("every call has one true outcome, whatever breaks", func(b bench) { // fault 17
		a := b.open("a", 0xa1, limits(transport.Limits{QueueFrames: 200, Pending: 400}))
		c := b.open("b", 0xb1)
		c.h.does(func(r transport.Request, reply func([]byte)) {
			if r.Kind%7 != 0 {
				reply(r.Body)
			}
		})
		var callers sync.WaitGroup
		stop := make(chan struct{})
		outcomes := make([][]result, 8)
		for caller := range outcomes {
			callers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					body := fmt.Sprintf("%d/%d", caller, i)
					r := transport.Request{Kind: uint8(i), Class: transport.Class(i % 4), Body: []byte(body), Within: 5 * time.Millisecond}
					outcomes[caller] = append(outcomes[caller], result{body, <-a.call(c.self, r)})
				}
			})
		}
		var own []result
		for round := range 60 {
			pace := time.NewTimer(5 * time.Millisecond)
			<-pace.C
			switch round % 5 {
			case 0:
				b.Break(b.t, "b")
			case 1:
				a.Drop(0xb1, errors.New("dropped"))
			case 2:
				a.Suspect(0xb1, true)
			case 3:
				a.Suspect(0xb1, false)
			case 4:
				// Until an answer has come, so that each part of the run has some on a slow machine too.
				for tries := 0; ; tries++ {
					body := fmt.Sprintf("%d.%d", round, tries)
					if a.connect(b.t, c.self) != nil {
						continue
					}
					own = append(own, result{body, <-a.call(c.self, transport.Request{Kind: 1, Class: transport.Write, Body: []byte(body)})})
					if own[len(own)-1].a.Err == nil {
						break
					}
				}
			}
		}
		close(stop)
		callers.Wait()
		s := a.stats(0xb1)
		if s.Calls != s.Answered+s.Late+s.Lost+s.NotSent || s.Pending != 0 || s.QueueLen != 0 || s.QueueBytes != 0 {
			b.t.Errorf("the metrics do not add up: %+v", s)
		}
		c.Close(b.t.Context()) // nothing arrives any more
		count := 0
		for _, all := range append(outcomes, own) {
			count += len(all)
			for _, o := range all {
				o.check(b.t, c.h.handled(o.body))
			}
		}
		if uint64(count) != s.Calls || s.Answered == 0 || s.NotSent == 0 {
			b.t.Errorf("%d calls, metrics %+v", count, s)
		}
	})
}

type result struct {
	body string
	a    transport.Answer
}

func (r result) check(t *testing.T, handled int) {
	t.Helper()
	var notSent *transport.NotSentError
	var lost *transport.LostError
	var late *transport.LateError
	switch err := r.a.Err; {
	case handled > 1:
		t.Errorf("%s was handled %d times", r.body, handled)
	case err == nil:
		if handled != 1 || string(r.a.Body) != r.body {
			t.Errorf("%s was answered %q and handled %d times", r.body, r.a.Body, handled)
		}
	case errors.As(err, &notSent):
		if handled != 0 {
			t.Errorf("%s was handled, and told as %v", r.body, err)
		}
	case errors.As(err, &late):
		if !late.Sent && handled != 0 {
			t.Errorf("%s was handled, and told as %v", r.body, err)
		}
	case !errors.As(err, &lost):
		t.Errorf("%s: %v", r.body, err)
	}
}
