package mirror

import "context"

// Turn bounds what is made for one reader at a time: of all watches that share one, a single frame or
// replacement exists until it has been taken, so that a reader who is slow holds one and not hundreds. A
// watch begins its turn when there is something to make, and ends it when it is asked for the next one.
type Turn interface {
	Begin(ctx context.Context) error
	End()
}

// turned is the turn of a watch; the zero value takes none. Used by the goroutine that calls Next, and by
// Close after it.
type turned struct {
	turn Turn
	held bool
}

func (t *turned) begin(ctx context.Context) error {
	if t.turn == nil {
		return nil
	}
	if err := t.turn.Begin(ctx); err != nil {
		return err
	}
	t.held = true
	return nil
}

func (t *turned) end() {
	if t.held {
		t.held = false
		t.turn.End()
	}
}

// InTurn makes the watch wait for its turn before it makes a frame. Call it before the first Next, and end
// with Done.
func (w *Watch) InTurn(t Turn) { w.turned.turn = t }

// Done ends the turn of what Next has returned. The goroutine that calls Next calls it.
func (w *Watch) Done() { w.turned.end() }

// InTurn and Done are those of [Watch].
func (l *live) InTurn(t Turn) { l.turned.turn = t }

// Done ends the turn of what Next has returned.
func (l *live) Done() { l.turned.end() }
