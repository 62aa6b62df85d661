package nodehub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
)

// schemaWait is how long a write waits for a schema to be compiled or a content to be checked, a free
// place included. What is bounded ends long before, where the machine is not overloaded.
const schemaWait = 5 * time.Second

// errSchemaWait is the cause of the end of such a wait.
var errSchemaWait = errors.New("a schema took too long")

// slots are the places in which schemas are compiled and contents checked. A check ends when nobody waits
// for it any more; compiling can not be stopped, and its size is bounded before it begins. Should a bound
// miss a case, the work keeps its place until it ends or the process does, nobody waits for it beyond
// schemaWait, and a node's turn goes on.
type slots struct {
	places *fairPlaces
	stuck  atomic.Int64 // pieces of work that nobody waits for any more and that go on
	log    *slog.Logger
}

func newSlots(log *slog.Logger) *slots {
	return &slots{places: newFairPlaces(max(4, 2*runtime.GOMAXPROCS(0)), "contents wait to be checked"), log: log}
}

// run does f for a type, for the caller of ctx, and returns its error. It waits no longer than schemaWait
// or ctx. The end of that wait says nothing of the schema or the content: it is a failure worth another try
// at schemaWait, and ctx's error else.
func (s *slots) run(ctx context.Context, nodeType string, f func(context.Context) error) error {
	wait, cancel := context.WithTimeoutCause(ctx, schemaWait, errSchemaWait)
	defer cancel()
	subject := author(ctx)
	if err := s.places.enter(wait, subject); err != nil {
		if errors.Is(err, errSchemaWait) {
			return overloaded("all places to check contents were taken for %s", schemaWait)
		}
		return err
	}
	const left, ended = 1, 2
	var state atomic.Int32
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				s.log.Error("checking a content panicked", "nodeType", nodeType, "panic", fmt.Sprint(r))
				done <- &SchemaError{NodeType: nodeType, Reason: "checking with it failed", Broken: true}
			}
			if !state.CompareAndSwap(0, ended) {
				s.stuck.Add(-1)
			}
			s.places.leave(subject)
		}()
		done <- f(wait)
	}()
	var err error
	select {
	case err = <-done:
	case <-wait.Done():
		if state.CompareAndSwap(0, left) {
			stuck := s.stuck.Add(1)
			err = context.Cause(wait)
			if errors.Is(err, errSchemaWait) {
				s.log.Warn("a schema takes too long and is not waited for", "nodeType", nodeType, "after", schemaWait, "stuck", stuck, "places", s.places.size)
			}
		} else {
			err = <-done // it ended at this moment
		}
	}
	if errors.Is(err, errSchemaWait) {
		return overloaded("the content could not be checked within %s", schemaWait)
	}
	return err
}

// overloaded is the refusal for lack of time or places: nothing is known of what was asked, and nothing done.
func overloaded(format string, args ...any) error {
	return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonOverloaded, RetryAfter: time.Second,
		Message: fmt.Sprintf(format, args...) + "; nothing was done, try again later"}
}
