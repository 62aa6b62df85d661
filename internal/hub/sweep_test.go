package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/address"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// waiting asks a hub that never answers, and returns the request's slot.
func waiting(t *testing.T, m *Mesh) (*slot, uint32, *Delivery) {
	t.Helper()
	k := NewKind("silent", Limits{})
	HandleLater(k, echo, func(context.Context, *Hub, *echoReq, Reply[*echoResp]) error { return nil })
	if _, err := m.Start(address.Of("acme/silent"), k, nil); err != nil {
		t.Fatal(err)
	}
	m.Go(func() {
		_, _ = echo.AskWithin(message.WithIdentity(m.Context(), alice), m, "acme/silent", &echoReq{}, budget.Read)
	})
	synctest.Wait()
	var at *slot
	var gen uint32
	m.slots.each(func(s *slot, g uint32) { at, gen = s, g })
	if at == nil {
		t.Fatal("nothing is pending")
	}
	return at, gen, at.cur.Load()
}

// decision 5
func TestALapseWaitsForTheInnerDiagnosisWithinTheGraceAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(Options{ID: "1", Bounds: budget.Defaults()})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(context.Background())
		s, gen, d := waiting(t, m)
		margin := int64(budget.Margin(time.Duration(d.budget.Deadline - d.posted)))

		d.inner.Add(1) // an ask of its own turn is pending
		later := m.sweeper.visit(s, gen, d.budget.Deadline, 0)
		if later != d.budget.Deadline+margin || !s.open(gen) {
			t.Fatalf("the first extension: %v", time.Duration(later-d.budget.Deadline))
		}
		s.deadline.Store(d.budget.Deadline + delegationGrace - 1)
		if again := m.sweeper.visit(s, gen, d.budget.Deadline+delegationGrace, 0); again == 0 || !s.open(gen) {
			t.Fatal("no second extension within the grace")
		}
		s.deadline.Store(d.budget.Deadline + delegationGrace)
		if again := m.sweeper.visit(s, gen, d.budget.Deadline+delegationGrace, 0); again != 0 || s.open(gen) {
			t.Fatal("extended beyond the grace")
		}
	})
}

// decision 5: the control
func TestALapseWithoutAnInnerAskIsNotExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(Options{ID: "1", Bounds: budget.Defaults()})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(context.Background())
		s, gen, d := waiting(t, m)
		if later := m.sweeper.visit(s, gen, d.budget.Deadline, 0); later != 0 || s.open(gen) {
			t.Fatal("extended")
		}
	})
}
