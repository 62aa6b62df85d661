package render

import (
	"context"
	"fmt"
	"time"
)

// The bounds of rendering. A document is untrusted input: whoever may write a node, or may read one and
// ask for a preview, decides what the parser is given.
const (
	// MaxDocument is the size of a document that is rendered, in bytes.
	MaxDocument = 1 << 20
	// maxOutput is the size of the HTML that a document may become, in bytes, before it is sanitised.
	maxOutput = 16 << 20
	// maxWork is how many bytes and delimiters the parser may look at again and again. A megabyte of
	// prose takes less than a tenth of it; what takes more grows with the square of its size.
	maxWork = 1 << 28
	// maxNesting is how many blocks of a document may be open inside each other; deeper ones are text.
	maxNesting = 100
	// maxCells is how many cells the tables of a document may have, those that a short row leaves out
	// included.
	maxCells = 200_000
	// renderBound is how long one document may take.
	renderBound = 5 * time.Second
	// maxWaiting is how many documents may wait for their turn; more are refused.
	maxWaiting = 64
	// waitBound is how long a document waits for its turn.
	waitBound = 2 * time.Second
)

// TooLargeError refuses a document that is too long, or too intricate, to be rendered.
type TooLargeError struct{ Reason string }

func (e *TooLargeError) Error() string { return "the document is not rendered: " + e.Reason }

// ProblemCode is the code of the error at the edge.
func (*TooLargeError) ProblemCode() string { return "too_large" }

// BusyError refuses a document because as many as may are being rendered; nothing was done.
type BusyError struct{ Running int }

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d documents are being rendered; nothing was done, try again later", e.Running)
}

// ProblemCode is the code of the error at the edge.
func (*BusyError) ProblemCode() string { return "overloaded" }

// RetryAfter is when to try again.
func (*BusyError) RetryAfter() time.Duration { return waitBound }

// turn waits for one of the renderer's slots. Whoever gets it gives it back by calling done.
func (r *Renderer) turn(ctx context.Context) (done func(), err error) {
	done = func() { <-r.slots }
	select {
	case r.slots <- struct{}{}:
		return done, nil
	default:
	}
	if r.waiting.Add(1) > maxWaiting {
		r.waiting.Add(-1)
		return nil, &BusyError{Running: cap(r.slots)}
	}
	defer r.waiting.Add(-1)
	t := time.NewTimer(waitBound)
	defer t.Stop()
	select {
	case r.slots <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-t.C:
		return nil, &BusyError{Running: cap(r.slots)}
	}
}

// meter counts the work of parsing one document and ends it: goldmark takes no context and has no bound
// of its own, and calls back for each inline and each block, where the meter panics with a stop. Only
// [guard] lets it do that.
type meter struct {
	ctx   context.Context
	work  int
	calls int
	cells int
	notes int // footnotes that are defined
	pipes int // escaped pipes in tables
}

// stop is what a meter panics with.
type stop struct{ err error }

// add counts n bytes that are looked at.
func (m *meter) add(n int) {
	m.work += n
	if m.work > maxWork {
		panic(stop{&TooLargeError{"it is too intricate, such as by very many unfinished links or emphases in one paragraph; divide it"}})
	}
	if m.calls++; m.calls%256 == 0 {
		m.alive()
	}
}

// alive ends the work when nobody waits for it any more, or when it has taken too long.
func (m *meter) alive() {
	if m.ctx.Err() != nil {
		panic(stop{context.Cause(m.ctx)})
	}
}

// guard runs f and returns what a meter ended it with.
func guard(f func() error) (err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case stop:
			err = x.err
		default:
			panic(x)
		}
	}()
	return f()
}

// capped is a buffer that refuses to grow beyond maxOutput.
type capped struct{ text []byte }

func (c *capped) Write(p []byte) (int, error) {
	if len(c.text)+len(p) > maxOutput {
		return 0, &TooLargeError{fmt.Sprintf("it becomes more than %d bytes of HTML", maxOutput)}
	}
	c.text = append(c.text, p...)
	return len(p), nil
}
