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
// place included. What is bounded ends long before.
const schemaWait = 5 * time.Second

// errSchemaWait is the cause of the end of such a wait.
var errSchemaWait = errors.New("a schema took too long")

// slots are the places in which schemas are compiled and contents checked. That work can not be stopped;
// its size is bounded before it begins. Should that bound miss a case, the work keeps its place until it
// ends or the process does, nobody waits for it beyond schemaWait, and a node's turn goes on.
type slots struct {
	free  chan struct{}
	stuck atomic.Int64 // pieces of work that nobody waits for any more and that go on
	log   *slog.Logger
}

func newSlots(log *slog.Logger) *slots {
	return &slots{free: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))), log: log}
}

// run does f for a type and returns its error. It waits no longer than schemaWait or ctx: then the
// error is the schema's at schemaWait, and ctx's else.
func (s *slots) run(ctx context.Context, nodeType string, f func() error) error {
	wait, cancel := context.WithTimeoutCause(ctx, schemaWait, errSchemaWait)
	defer cancel()
	select {
	case s.free <- struct{}{}:
	case <-wait.Done():
		if cause := context.Cause(wait); !errors.Is(cause, errSchemaWait) {
			return cause
		}
		return &message.Failure{Type: message.ShuttingDown, Reason: message.ReasonOverloaded,
			Message: fmt.Sprintf("all %d places to check contents are taken; nothing was written, try again later", cap(s.free))}
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
			<-s.free
		}()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-wait.Done():
	}
	if !state.CompareAndSwap(0, left) {
		return <-done // it ended at this moment
	}
	stuck := s.stuck.Add(1)
	if cause := context.Cause(wait); !errors.Is(cause, errSchemaWait) {
		return cause
	}
	s.log.Error("a schema takes too long and is not waited for", "nodeType", nodeType, "after", schemaWait, "stuck", stuck, "places", cap(s.free))
	return &SchemaError{NodeType: nodeType, Reason: fmt.Sprintf("it takes more than %s", schemaWait), Broken: true}
}
