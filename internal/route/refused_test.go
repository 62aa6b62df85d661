package route

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/cluster"
	"github.com/hubmesh/hubmesh/internal/cluster/claim"
	"github.com/hubmesh/hubmesh/internal/cluster/transport"
	"github.com/hubmesh/hubmesh/internal/cluster/wire"
	"github.com/hubmesh/hubmesh/internal/hub"
	"github.com/hubmesh/hubmesh/internal/message"
)

// settle waits, in virtual time, for as long as an exchange of messages takes, and then until nothing runs.
func settle() {
	<-time.After(100 * time.Millisecond)
	synctest.Wait()
}

// C30, protocol §6: no message overtakes one that was refused before
func TestWhatIsRefusedFencesItsLaneAtTheReceiver(t *testing.T) {
	for _, request := range []bool{false, true} {
		t.Run(fmt.Sprint("request ", request), func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				first := p.peer.send(p.process, "1", 5, request)
				settle()
				if first.code() != refusedAbsent {
					t.Fatalf("where no hub is: %d", first.code())
				}
				p.serve(p.process, p.kind(hub.Limits{}))
				same, older := p.peer.send(p.process, "2", 5, request), p.peer.send(p.process, "3", 4, request)
				settle()
				if same.code() != refusedLane || older.code() != refusedLane || p.ran.String() != "[]" {
					t.Fatalf("behind it: %d and %d, handled %v", same.code(), older.code(), p.ran)
				}
				for i := 1; i <= 3; i++ {
					p.peer.send(p.process, fmt.Sprint(i), 6, request)
				}
				settle()
				if p.ran.String() != "[1 2 3]" {
					t.Fatalf("on the next lane: %v", p.ran)
				}
			})
		})
	}
}

// C30, protocol §6: what waited in a hub that went down was not executed, and neither is what comes behind it
func TestWhatAHubTurnsAwayAsItGoesFencesItsLane(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		began, leave := make(chan struct{}), make(chan struct{})
		k := hub.NewKind("parked", hub.Limits{})
		hub.Handle(k, travels, func(_ context.Context, _ *hub.Hub, r *travelRequest) (*travelRequest, error) {
			close(began)
			<-leave
			return r, nil
		})
		h := p.serve(p.process, k)
		p.peer.send(p.process, "runs", 5, true)
		<-began
		waits := p.peer.send(p.process, "1", 5, true)
		settle()
		h.Dispose()
		settle() // it takes nothing any more
		close(leave)
		<-h.Done()
		settle()
		if waits.code() != refusedGoing {
			t.Fatalf("what waited: %d", waits.code())
		}
		p.serve(p.process, p.kind(hub.Limits{}))
		behind := p.peer.send(p.process, "2", 5, true) // it was on the wire
		settle()
		if behind.code() != refusedLane || p.ran.String() != "[]" {
			t.Fatalf("what came behind it: %d, handled %v", behind.code(), p.ran)
		}
		p.peer.send(p.process, "1", 6, true)
		p.peer.send(p.process, "2", 6, true)
		settle()
		if p.ran.String() != "[1 2]" {
			t.Fatal(p.ran)
		}
	})
}

// protocol §5: claiming parks
func TestWhatComesWhileANodesGrantIsUnderWayWaitsForItInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		verdict wire.Verdict
		codes   []byte
		ran     string
	}{
		"had":     {wire.Landed, []byte{replyTaken, replyValue, replyTaken}, "[1 2 3]"},
		"not had": {wire.Held, []byte{refusedAbsent, refusedAbsent, refusedAbsent}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				p.peer.set(func(b *peer) { b.hold = true })
				p.a.Do(func(s *cluster.Silo) { s.Claims.Activate(p.node, nil, func(claim.Outcome) {}) })
				settle()
				if len(p.peer.held) != 1 {
					t.Fatalf("%d claims", len(p.peer.held))
				}
				all := []*reply{p.peer.send(p.node, "1", 1, false), p.peer.send(p.node, "2", 1, true), p.peer.send(p.node, "3", 1, false)}
				settle()
				if got := codes(all); !bytes.Equal(got, []byte{0, 0, 0}) {
					t.Fatalf("before the grant: %v", got)
				}
				p.peer.held[0](byte(test.verdict))
				settle()
				if got := codes(all); !bytes.Equal(got, test.codes) || p.ran.String() != test.ran {
					t.Errorf("%v, handled %v", got, p.ran)
				}
			})
		})
	}
}

// decision 3: one hub in the cluster; protocol §5
func TestANodeHubWhoseGrantIsLostBeforeItHasStartedDoesNotStart(t *testing.T) {
	for name, lose := range map[string]func(p *pair){
		"it steps aside": func(p *pair) { p.a.StepAside(p.node, 0) },
		"it is put out":  func(p *pair) { p.a.Evicted() },
	} {
		t.Run(name, func(t *testing.T) {
			paired(t, func(t *testing.T, p *pair) {
				began, leave := make(chan struct{}), make(chan struct{})
				p.rows.read = func() {
					close(began)
					<-leave
				}
				p.a.Do(func(s *cluster.Silo) { s.Claims.Activate(p.node, nil, func(claim.Outcome) {}) })
				<-began
				waits := p.peer.send(p.node, "1", 1, true)
				settle()
				p.a.Do(func(*cluster.Silo) { lose(p) })
				close(leave)
				settle()
				if waits.code() != refusedGoing || p.ran.String() != "[]" || p.mesh.Find(p.node) != nil {
					t.Errorf("answered with %d, handled %v", waits.code(), p.ran)
				}
			})
		})
	}
}

// bad input: more messages than may wait for a grant
// protocol §7
func TestThe513thMessageForANodeWhoseGrantIsUnderWayIsRefusedAsOverloaded(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.peer.set(func(b *peer) { b.hold = true })
		p.a.Do(func(s *cluster.Silo) { s.Claims.Activate(p.node, nil, func(claim.Outcome) {}) })
		for range maxParked {
			p.peer.send(p.node, "1", 1, false)
		}
		settle()
		for _, request := range []bool{false, true} {
			r := p.peer.send(p.node, "over", 1, request)
			settle()
			if f := r.failure(p); f.Reason != message.ReasonOverloaded || f.Target != p.node {
				t.Errorf("request %v: %+v", request, f)
			}
		}
		p.peer.held[0](byte(wire.Landed))
		settle()
		if n := len(p.ran.all); n != maxParked {
			t.Errorf("%d handled", n)
		}
	})
}

// fault 17: a post has an outcome, on another silo as well
func TestAPostOfAnotherSiloIsAnsweredAsTakenOrWithItsRefusal(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		began, leave := make(chan struct{}), make(chan struct{})
		k := hub.NewKind("parked", hub.Limits{Shed: 1, Hard: 1})
		hub.Handle(k, travels, func(_ context.Context, _ *hub.Hub, r *travelRequest) (*travelRequest, error) {
			if string(r.B) == "runs" {
				close(began)
				<-leave
			}
			return r, nil
		})
		p.serve(p.process, k)
		runs := p.peer.send(p.process, "runs", 1, false)
		<-began
		waits, over := p.peer.send(p.process, "waits", 1, false), p.peer.send(p.process, "over", 1, false)
		settle()
		if runs.code() != replyTaken || waits.code() != replyTaken {
			t.Errorf("those that were taken: %d and %d", runs.code(), waits.code())
		}
		if f := over.failure(p); f.Reason != message.ReasonOverloaded || f.AnsweredBy != p.process || f.Operation != "test/travels" {
			t.Errorf("%+v", f)
		}
		close(leave)
	})
}

// decision 2: nothing is repeated that may have been executed
// invariant 44
func TestWhatWasSentOnAConnectionThatBreaksIsNotSentAgainAndItsSenderIsTold(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.peer.set(func(b *peer) { b.serves = true })
		var told []*message.Failure
		k := hub.NewKind("poster", hub.Limits{})
		hub.Handle(k, hub.Failed, func(_ context.Context, _ *hub.Hub, n *hub.Notice) (*hub.None, error) {
			told = append(told, n.Failure)
			return &hub.None{}, nil
		})
		poster := p.serve("portal/poster", k)
		asked := make(chan error, 1)
		go func() {
			_, err := travels.Ask(system(t), p.mesh, p.process, &travelRequest{B: []byte("ask")})
			asked <- err
		}()
		settle()
		poster.Do(func(ctx context.Context, h *hub.Hub) {
			if err := travels.Post(ctx, h.Mesh(), p.process, &travelRequest{B: []byte("post")}); err != nil {
				t.Error(err)
			}
		})
		settle()
		if got := fmt.Sprint(p.peer.arrived); got != "[ask post]" {
			t.Fatal(got)
		}
		begin := time.Now()
		p.net.Break(me.Name, other.Name)
		var f *message.Failure
		if err := <-asked; !errors.As(err, &f) || f.Reason != message.ReasonLost || !f.OutcomeUnknown || f.Target != p.process {
			t.Errorf("%+v", err)
		}
		if took := time.Since(begin); took > 20*time.Millisecond {
			t.Errorf("after %v", took)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if len(told) != 1 || told[0].Reason != message.ReasonLost || !told[0].OutcomeUnknown {
			t.Errorf("the post: %+v", told)
		}
		if got := fmt.Sprint(p.peer.arrived); got != "[ask post]" {
			t.Errorf("sent again: %s", got)
		}
		// What was not sent is. The lane goes on.
		go func() {
			_, err := travels.Ask(system(t), p.mesh, p.process, &travelRequest{B: []byte("next")})
			asked <- err
		}()
		settle()
		if got := fmt.Sprint(p.peer.arrived); got != "[ask post next]" {
			t.Fatal(got)
		}
		p.peer.waiting[2](p.a.failed(&message.Failure{Type: message.Rejected, Reason: "test"}))
		if err := <-asked; !errors.As(err, &f) || f.Reason != "test" {
			t.Errorf("%v", err)
		}
	})
}

// protocol §6: only what certainly was not executed is sent again
func TestWhatBecomesOfAMessageWhoseSiloGaveNoAnswer(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		for name, test := range map[string]struct {
			err     error
			want    Disposition
			reason  string // what its caller is told; "" is nothing yet
			unknown bool
		}{
			"it was lost":         {&transport.LostError{}, Lost, message.ReasonLost, true},
			"it came late":        {&transport.LateError{}, Lost, message.ReasonLost, true},
			"anything else":       {errors.New("unheard of"), Lost, message.ReasonLost, true},
			"it was not sent":     {&transport.NotSentError{Reason: transport.Broken}, Unsent, "", false},
			"too much waits":      {&transport.NotSentError{Reason: transport.Overloaded}, Answered, message.ReasonOverloaded, false},
			"it is too large":     {&transport.TooLargeError{}, Answered, message.ReasonUnreadable, false},
			"it is large, unsent": {&transport.NotSentError{Reason: transport.Broken, Cause: &transport.TooLargeError{}}, Answered, message.ReasonUnreadable, false},
		} {
			ends := make(answered, 1)
			d := p.mesh.Receive(&hub.Visitor{}, hub.Foreign{Type: travels.Wire(), Message: &travelRequest{}, To: at(p.process), Answer: ends})
			x := &parcel{d: d, ch: p.a.lanes.get(p.a, p.process, false)}
			if got := x.undelivered(test.err); got != test.want {
				t.Errorf("%s: disposition %d", name, got)
			}
			select {
			case err := <-ends:
				var f *message.Failure
				if !errors.As(err, &f) || f.Reason != test.reason || f.OutcomeUnknown != test.unknown {
					t.Errorf("%s: %+v", name, err)
				}
			default:
				if test.reason != "" {
					t.Errorf("%s: its caller is told nothing", name)
				}
				d.Fail(errors.New("over"))
			}
		}
	})
}

// protocol §6: a message for another incarnation is not executed by this one
// The transport closes the connections of an earlier epoch, but a frame that it has read by then still comes.
func TestAMessageForAnotherIncarnationIsRefusedWithoutATurn(t *testing.T) {
	paired(t, func(t *testing.T, p *pair) {
		p.serve(p.process, p.kind(hub.Limits{}))
		deliver := func(epoch uint64) (code byte) {
			payload, err := p.a.codec.enc.Marshal(&travelRequest{B: []byte("x")})
			if err != nil {
				t.Fatal(err)
			}
			e := envelope{Epoch: epoch, Sender: 9, Lane: 1, To: at(p.process), Type: "test/travels", Identity: message.SystemIdentity(), Payload: payload}
			p.a.Deliver(transport.Peer{}, e.append(nil), func(b []byte) { code = b[0] })
			return code
		}
		for _, epoch := range []uint64{0, uint64(me.Epoch) + 7} {
			if code := deliver(epoch); code != refusedEpoch {
				t.Errorf("epoch %d: %d", epoch, code)
			}
		}
		if code := deliver(uint64(me.Epoch)); code != replyTaken {
			t.Errorf("its own: %d", code)
		}
		p.a.self.Store(0) // it has been put out, and its transport has not heard yet
		for _, epoch := range []uint64{0, uint64(me.Epoch)} {
			if code := deliver(epoch); code != refusedEpoch {
				t.Errorf("in no view, epoch %d: %d", epoch, code)
			}
		}
		p.a.self.Store(uint64(me.Epoch))
		settle()
		if p.ran.String() != "[x]" {
			t.Error(p.ran)
		}
	})
}
