package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/hubmesh/hubmesh/internal/message"
)

// poster is a hub that posts in its turns, and hears of what nobody took.
type poster struct {
	*Hub
	r    *rig
	back []*message.Failure // by Post
	told []*message.Failure // by a notice
}

func (r *rig) poster(l Limits) *poster {
	p := &poster{r: r}
	k := NewKind("poster", l)
	Handle(k, Failed, func(_ context.Context, _ *Hub, n *Notice) (*None, error) {
		p.told = append(p.told, n.Failure)
		return nil, nil
	})
	p.Hub = r.start("portal/poster", k)
	return p
}

// send posts n events to a path in one turn.
func (p *poster) send(to string, n int) {
	p.Do(func(ctx context.Context, h *Hub) {
		for i := range n {
			if err := event.Post(ctx, h.Mesh(), to, &echoReq{fmt.Sprint(i)}); err != nil {
				p.back = append(p.back, failureOf(p.r.t, err))
			}
		}
	})
	synctest.Wait()
}

func (p *poster) overloaded(back, told int) {
	p.r.t.Helper()
	if len(p.back) != back || len(p.told) != told {
		p.r.t.Errorf("%d given back, %d told; wanted %d and %d", len(p.back), len(p.told), back, told)
	}
	for _, f := range append(p.back[:len(p.back):len(p.back)], p.told...) {
		if f.Reason != message.ReasonOverloaded || !f.Transient() || f.Target != "acme/a" || f.Operation != "test/event" {
			p.r.t.Fatalf("%+v", f)
		}
	}
}

// fault 17: there is no fire-and-forget path without an outcome; invariant 14
func TestAPostBeyondTheHardBoundIsGivenBackAndNotTold(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		k := recorder(&got)
		k.limits.Hard, k.limits.Shed = 100, 100
		leave := make(chan struct{})
		Handle(k, park, func(context.Context, *Hub, *echoReq) (*echoResp, error) { <-leave; return &echoResp{}, nil })
		r.start("acme/a", k)
		go park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		p := r.poster(Limits{})
		p.send("acme/a", 130)
		close(leave)
		synctest.Wait()
		p.overloaded(30, 0)
		if st := r.Stats(); len(got) != 100 || st.Overloaded != 30 {
			t.Errorf("%d handled, %+v", len(got), st)
		}
	})
}

// fault 17; invariant 17: whether the poster still looks or not when the turn refuses, it hears once
func TestAPostThatAFullGateRefusesIsGivenBackOrToldAndNeverBoth(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		h := r.start("acme/a", recorder(&got, Gate{Name: "Data"}))
		p := r.poster(Limits{})
		p.send("acme/a", 700)
		p.overloaded(len(p.back), 188-len(p.back))
		if err := h.OpenGate("Data"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(got) != 512 {
			t.Errorf("%d handled", len(got))
		}
	})
}

// fault 17: one of the two, whichever comes first
func TestARefusalIsGivenBackUntilThePosterHasLookedAndToldFromThen(t *testing.T) {
	in(t, func(r *rig) {
		p := r.poster(Limits{})
		h := r.start("acme/a", NewKind("k", Limits{}))
		why := &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonOverloaded}
		for _, looked := range []bool{false, true} {
			d := &Delivery{msg: &echoReq{}, info: &event.typeInfo, from: &p.addr, to: &h.addr}
			if looked && d.refusal() != nil {
				t.Error("it was refused by nobody")
			}
			r.Refuse(d, why)
			synctest.Wait()
			if err := d.refusal(); (err == nil) != looked || d.State() != message.FailedState {
				t.Errorf("looked %v: %v, %v", looked, err, d.State())
			} else if err != nil {
				p.back = append(p.back, failureOf(t, err))
			}
			p.overloaded(1, len(p.told))
		}
		p.overloaded(1, 1)
	})
}

// fault 17: nobody looks at the copy that was forwarded
func TestAForwardedPostThatIsRefusedIsToldToItsSender(t *testing.T) {
	in(t, func(r *rig) {
		var got []string
		r.start("acme/a", recorder(&got, Gate{Name: "Data"}))
		k := NewKind("way", Limits{})
		HandleAny(k, func(*Delivery) (Verdict, error) { return Forward("acme/a"), nil })
		r.start("acme/way", k)
		p := r.poster(Limits{})
		p.send("acme/way", 512+9)
		p.overloaded(0, 9)
		r.Mesh.Find("acme/a").OpenGate("Data")
	})
}

// invariant 19; messaging §1.7: after a failed start what waited and what comes is refused with the cause
func TestAPostToAHubThatCouldNotStartIsToldToItsSenderWithTheCause(t *testing.T) {
	in(t, func(r *rig) {
		fail := make(chan struct{})
		k := echoes(nil)
		k.AddInitialiser("load", func(context.Context, *Hub) error { <-fail; return errors.New("no such content") })
		r.start("acme/a", k)
		p := r.poster(Limits{})
		p.send("acme/a", 3) // they wait for the start
		close(fail)
		synctest.Wait()
		if len(p.back)+len(p.told) != 3 {
			t.Errorf("%d given back, %d told", len(p.back), len(p.told))
		}
		p.send("acme/a", 2)
		all := append(p.back, p.told...)
		if len(all) != 5 {
			t.Errorf("%d given back, %d told", len(p.back), len(p.told))
		}
		for _, f := range all {
			if f.Reason != message.ReasonInit {
				t.Errorf("%+v", f)
			}
		}
	})
}

// messaging §1.12: events are not answered by a hub that goes down, but whoever posts one is
func TestAPostToAHubOnItsWayDownIsGivenBackAndWhatWaitsInItIsNotTold(t *testing.T) {
	in(t, func(r *rig) {
		leave := make(chan struct{})
		k := echoes(leave)
		h := r.start("acme/a", k)
		go park.Ask(r.ctx, r.Mesh, "acme/a", &echoReq{})
		synctest.Wait()
		p := r.poster(Limits{})
		p.send("acme/a", 4) // behind what runs
		h.Dispose()
		synctest.Wait()
		p.send("acme/a", 3)
		close(leave)
		<-h.Done()
		synctest.Wait()
		if len(p.back) != 3 || len(p.told) != 0 || p.back[0].Reason != message.ReasonStopping {
			t.Errorf("%d given back, %d told", len(p.back), len(p.told))
		}
		if st := r.Stats(); st.Unheard != 4 {
			t.Errorf("%d unheard", st.Unheard)
		}
	})
}

// C29: never a NACK for a NACK
func TestANoticeThatItsHubCanNotTakeIsShedAndToldToNobody(t *testing.T) {
	in(t, func(r *rig) {
		p := r.poster(Limits{Hard: 2, Shed: 2})
		var got []string
		r.start("acme/a", recorder(&got, Gate{Name: "Data"}))
		far := r.start("acme/far", NewKind("far", Limits{})) // is told of nothing either
		leave := make(chan struct{})
		p.Do(func(ctx context.Context, h *Hub) {
			for range 512 + 5 { // its inbox is full from the third on
				if err := event.Post(ctx, h.Mesh(), "acme/a", &echoReq{}); err != nil {
					p.back = append(p.back, failureOf(t, err))
				}
			}
			<-leave
		})
		synctest.Wait()
		close(leave)
		synctest.Wait()
		p.overloaded(len(p.back), min(2, 5-len(p.back)))
		if st := r.Stats(); st.Shed != int64(5-len(p.back)-len(p.told)) || st.Notified != int64(5-len(p.back)) || far.Snapshot().Version != 0 {
			t.Errorf("%+v", st)
		}
		r.Mesh.Find("acme/a").OpenGate("Data")
	})
}
