package message

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// invariant 22
func TestADisposingHubIsShuttingDownBareOrWrapped(t *testing.T) {
	err := error(&Disposing{Address: "acme/x"})
	for depth := 0; depth <= maxChain; depth++ {
		if f := Classify(err); f.Type != ShuttingDown {
			t.Fatalf("depth %d: %v", depth, f.Type)
		}
		err = fmt.Errorf("layer %d: %w", depth, err)
	}
	if f := Classify(err); f.Type == ShuttingDown {
		t.Fatal("a chain deeper than 16 is searched")
	}
	joined := errors.Join(errors.New("other"), &Disposing{Address: "acme/x"})
	if f := Classify(joined); f.Type != ShuttingDown {
		t.Fatalf("joined: %v", f.Type)
	}
}

// invariant 23
func TestAnOrdinaryHandlerBugIsNeverShuttingDown(t *testing.T) {
	for _, err := range []error{
		errors.New("boom"), errors.New("the printer is shutting down"), context.Canceled, context.DeadlineExceeded,
	} {
		if f := Classify(err); f.Type != Unknown || f.Transient() {
			t.Errorf("%v became %v", err, f.Type)
		}
	}
}

// messaging §1.3
func TestACauseStaysReachableInsideTheProcess(t *testing.T) {
	cause := &Disposing{Address: "x"}
	f := Classify(fmt.Errorf("while reading: %w", cause))
	var d *Disposing
	if !errors.As(error(f), &d) || d != cause {
		t.Fatal("the cause is lost")
	}
}

// messaging §1.6
func TestHubShapedPrincipalsAreTold(t *testing.T) {
	for subject, want := range map[string]bool{"mesh/1": true, "portal/reads-1": true, "Alice": false, "meshes": false} {
		if got := (&Identity{Subject: subject}).HubShaped(); got != want {
			t.Errorf("%s: %v", subject, got)
		}
	}
}
