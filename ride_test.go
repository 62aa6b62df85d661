package hubmesh

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// architecture.md decision 2: what was certainly not executed may be tried again, and reads may when they were lost
func TestARideRepeatsWhatChangesNothingUntilItIsAnsweredOrItsBoundIsOver(t *testing.T) {
	fails := func(reason string, unknown bool) error {
		return fmt.Errorf("asking: %w", &message.Failure{Type: message.ShuttingDown, Reason: reason, OutcomeUnknown: unknown})
	}
	refused := errors.New("no such node")
	for name, c := range map[string]struct {
		fail  error
		lost  bool
		until time.Duration // when the failure ends; 0 is never
		took  time.Duration // at most; 0 is at once
	}{
		"a node whose silo is put out":                 {fails(message.ReasonUnknown, false), onlyUnsent, 1400 * time.Millisecond, 1600 * time.Millisecond},
		"a node that is handed over":                   {fails(message.ReasonStopping, false), onlyUnsent, 5 * time.Millisecond, 10 * time.Millisecond},
		"a silo that does not know whether it is one":  {fails(message.ReasonIsolated, false), onlyUnsent, 300 * time.Millisecond, 500 * time.Millisecond},
		"a read that was lost":                         {fails(message.ReasonLost, true), alsoLost, time.Second, 1200 * time.Millisecond},
		"a read that is lost again and again":          {fails(message.ReasonLost, true), alsoLost, 0, 3 * time.Second},
		"the control: a write that was lost":           {fails(message.ReasonLost, true), onlyUnsent, time.Second, 0},
		"the control: an overloaded hub":               {fails(message.ReasonOverloaded, false), alsoLost, time.Second, 0},
		"the control: a hub that still starts":         {fails(message.ReasonStarting, false), alsoLost, time.Second, 0},
		"the control: an address that nobody serves":   {fails(message.ReasonNoEntry, false), alsoLost, time.Second, 0},
		"the control: a type that no silo handles":     {fails(message.ReasonNoSilo, false), alsoLost, time.Second, 0},
		"the control: an answer that is not transient": {refused, alsoLost, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bounds, began, asked := budget.Defaults(), time.Now(), 0
				got, err := ride(t.Context(), &bounds, c.lost, func() (int, error) {
					asked++
					if c.until > 0 && time.Since(began) >= c.until {
						return 7, nil
					}
					return 0, c.fail
				})
				took := time.Since(began)
				if c.took == 0 && (asked != 1 || !errors.Is(err, c.fail)) {
					t.Errorf("asked %d times in %v: %v", asked, took, err)
				}
				if c.took > 0 && (took > c.took || (err == nil) != (c.until > 0) || err == nil && got != 7) {
					t.Errorf("%d %v after %v", got, err, took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // and no longer than its client waits
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		bounds, began := budget.Defaults(), time.Now()
		if _, err := ride(ctx, &bounds, alsoLost, func() (int, error) { return 0, fails(message.ReasonUnknown, false) }); err == nil || time.Since(began) > 50*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
