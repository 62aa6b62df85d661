package hub

import (
	"context"
	"errors"
	"testing"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/message"
)

type visit struct{ N int }

var (
	visitQuick = Define[*visit, *visit]("test/visit-quick", message.Request)
	visitTurn  = Define[*visit, *visit]("test/visit-turn", message.Request)
)

// answerFunc is what waits for an outcome.
type answerFunc func(any, error, bool)

func (f answerFunc) Answer(v any, err error, started bool) { f(v, err, started) }

func foreign(w WireType, n int, h *Hub, f answerFunc) Foreign {
	to := h.Address()
	return Foreign{Type: w, Message: &visit{n}, Identity: message.SystemIdentity(), To: &to, Answer: f}
}

// offer sends a request as another process would and returns its outcome where it is there already.
func offer(t *testing.T, m *Mesh, h *Hub, w WireType, ended chan<- error) (done bool) {
	t.Helper()
	d := m.Receive(&Visitor{}, foreign(w, 1, h, func(_ any, err error, _ bool) { done = true; ended <- err }))
	if !m.Offer(h, d) {
		t.Fatal("the hub did not take the request")
	}
	return done
}

// hub §5
func TestAQuickHandlerOfAnIdleHubAnswersAnotherProcessBeforeOfferReturns(t *testing.T) {
	m, err := New(Options{ID: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	k := NewKind("visited", Limits{})
	begun, release := make(chan struct{}), make(chan struct{})
	Handle(k, visitTurn, func(_ context.Context, _ *Hub, v *visit) (*visit, error) {
		close(begun)
		<-release
		return v, nil
	})
	refused := errors.New("odd")
	HandleQuick(k, visitQuick, func(ctx context.Context, _ *Hub, v *visit) (*visit, error) { return v, refused })
	h, err := m.Start(address.Of("portal/visited"), k, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 3)
	if !offer(t, m, h, visitQuick.Wire(), ended) {
		t.Error("an idle hub did not answer at once")
	}
	if f := (*message.Failure)(nil); !errors.As(<-ended, &f) || f.AnsweredBy != "portal/visited" {
		t.Errorf("the failure does not say who answered: %v", f)
	}
	// The control: behind a turn that runs, the same request waits for its own.
	before := make(chan error, 1)
	d := m.Receive(&Visitor{}, foreign(visitTurn.Wire(), 2, h, func(_ any, err error, _ bool) { before <- err }))
	if !m.Offer(h, d) {
		t.Fatal("the hub did not take the request")
	}
	<-begun
	behind := make(chan error, 1)
	if d := m.Receive(&Visitor{}, foreign(visitQuick.Wire(), 3, h, func(_ any, err error, _ bool) { behind <- err })); !m.Offer(h, d) {
		t.Fatal("the hub did not take the request")
	}
	select {
	case <-behind:
		t.Error("a request overtook the turn that ran")
	default:
	}
	close(release)
	if err := <-before; err != nil {
		t.Error(err)
	}
	<-behind
}
