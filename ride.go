package hubmesh

import (
	"context"
	"errors"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// Pauses between the questions of a ride: the first ones find a node that was handed over, the last ones one
// whose silo was put out.
const (
	rideFrom = 10 * time.Millisecond
	rideTo   = 160 * time.Millisecond
)

// What a ride may repeat.
const (
	onlyUnsent = false // what was certainly not executed
	alsoLost   = true  // reads, whose repetition changes nothing
)

// ride asks for a client who can not see what goes on in the cluster. While the silo of a node goes down, is
// put out, or can not be reached, the mesh says so within milliseconds; a client would only ask again, so it is
// asked again here, within the bound "ride". The last answer is told as it was.
func ride[T any](ctx context.Context, bounds *budget.Table, lost bool, ask func() (T, error)) (T, error) {
	until := time.Now().Add(bounds.Own(budget.Ride))
	for pause := rideFrom; ; pause = min(2*pause, rideTo) {
		got, err := ask()
		if err == nil || !passes(err, lost) || time.Until(until) < pause {
			return got, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return got, err
		}
	}
}

// passes tells whether a failure is of a silo's coming and going, and the question may be put again.
func passes(err error, lost bool) bool {
	var f *message.Failure
	if !errors.As(err, &f) || !f.Transient() || f.OutcomeUnknown && !lost {
		return false
	}
	switch f.Reason {
	case message.ReasonLost, message.ReasonUnknown, message.ReasonStopping, message.ReasonIsolated:
		return true
	}
	return false
}
