package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

const mediaEvents = "text/event-stream"

// heartbeat is how often a quiet stream is written to, so that both ends and what is between them see
// that it lives.
const heartbeat = 15 * time.Second

// event is one server-sent event. An id of "" is none.
type event struct {
	name string
	id   string
	data []byte // one line of JSON

	end func() // called once it was written or was given up; nil: nothing to do
}

func (e event) over() {
	if e.end != nil {
		e.end()
	}
}

// eventWriter writes events to one client; each flush has a deadline of its own.
type eventWriter struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	flush time.Duration
	line  []byte
}

func (e *eventWriter) begin() error {
	h := e.w.Header()
	h.Set("Content-Type", mediaEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	return e.comment("open")
}

func (e *eventWriter) comment(text string) error {
	e.line = append(append(append(e.line[:0], ": "...), text...), "\n\n"...)
	return e.send()
}

func (e *eventWriter) event(ev event) error {
	e.line = append(append(append(e.line[:0], "event: "...), ev.name...), '\n')
	if ev.id != "" {
		e.line = append(append(append(e.line, "id: "...), ev.id...), '\n')
	}
	e.line = append(e.line, "data: "...)
	// The data is not copied: it may be large, and this buffer stays with the connection.
	return e.send(ev.data, []byte("\n\n"))
}

func (e *eventWriter) send(more ...[]byte) error {
	if err := e.rc.SetWriteDeadline(time.Now().Add(e.flush)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	for _, part := range append([][]byte{e.line}, more...) {
		if _, err := e.w.Write(part); err != nil {
			return err
		}
	}
	return e.rc.Flush()
}

// subscription follows one thing until ctx ends or it returns why it ended. Out hands an event over and
// fails once the stream has ended.
type subscription func(ctx context.Context, turn Turn, out func(event) error) error

// oneAtATime is the turn of a connection.
type oneAtATime chan struct{}

// Begin waits for the turn.
func (t oneAtATime) Begin(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errStreamOver
	}
}

// End gives the turn on.
func (t oneAtATime) End() { <-t }

// ended is the end of one subscription of a stream.
type ended struct {
	sub int
	err error
}

// errStreamOver is what out answers after the end of the stream.
var errStreamOver = errors.New("the stream has ended")

// openStream runs subscriptions on one connection until the client leaves, the server closes, or all of
// them have ended. With lazy nothing is written before the first event, so that a subscription which
// fails at once is answered with a status. Closed turns the end of one subscription into its last event.
func (s *Server) openStream(w http.ResponseWriter, r *http.Request, subs []subscription, lazy bool, closed func(ended) event) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return problem("overloaded", fmt.Sprintf("this process has %d open streams and takes no more", cap(s.streams)))
	}
	subject, most := subjectOf(r), s.limits.SubjectStreams
	if subject == message.SubjectAnonymous {
		most = max(most, s.limits.Streams/8)
	}
	leave, err := s.streamsOf.enter(subject, most)
	if err != nil {
		return err
	}
	defer leave()
	s.streamsEnd.Add(1)
	defer s.streamsEnd.Done()
	over, release, err := followed(r.Context())
	if err != nil {
		return err
	}
	defer release()
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()

	ctx, cancel := context.WithCancel(r.Context())
	events, ends := make(chan event), make(chan ended)
	turn := make(oneAtATime, 1)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for i, sub := range subs {
		running.Go(func() {
			err := contained(ctx, sub, turn, func(ev event) error {
				// What nobody reads is held until it is: an answer like any other.
				size := int64(len(ev.data))
				if err := s.room(ctx, subject, size); err != nil {
					return err
				}
				ev.end = func() { s.held.give(subject, size) }
				select {
				case events <- ev:
					return nil
				case <-ctx.Done():
					ev.over()
					return errStreamOver
				}
			})
			select {
			case ends <- ended{sub: i, err: err}:
			case <-ctx.Done():
			}
		})
	}
	e := &eventWriter{w: w, rc: http.NewResponseController(w), flush: s.bounds.Own(budget.Flush)}
	if lazy {
		select {
		case ev := <-events:
			switch {
			case closedBy(over):
				ev.over()
				return credentialOver
			case closedBy(s.closing):
				ev.over()
				return problem("shutting_down", "the server is going down")
			}
			err := e.start(ev)
			ev.over()
			if err != nil {
				return nil // the client has gone
			}
		case end := <-ends:
			return end.err
		case <-over:
			return credentialOver
		case <-s.closing:
			return problem("shutting_down", "the server is going down")
		case <-ctx.Done():
			return nil
		}
	} else if e.begin() != nil {
		return nil
	}
	s.pump(ctx, e, events, ends, over, len(subs), closed)
	return nil
}

// room holds an event of a stream. One for which there is no room waits for it, as long as it might be written:
// a stream that is read is not ended because somebody else sends much at this moment.
func (s *Server) room(ctx context.Context, subject string, size int64) error {
	err := s.awaitRoom(ctx, func() error { return s.held.take(subject, size, 0) })
	if err != nil && ctx.Err() != nil {
		return errStreamOver
	}
	return err
}

// start begins the stream with its first event, which may be nothing.
func (e *eventWriter) start(first event) error {
	if err := e.begin(); err != nil || first.name == "" {
		return err
	}
	return e.event(first)
}

// credentialOver ends what is open with a credential that does not count any more.
var credentialOver = problem("unauthenticated", "the token or session that this was opened with was revoked, logged out or has expired; sign in again")

// pump writes what comes until the stream is over. Nothing is delivered once the credential counts no
// more (edge.md AC-R1).
func (s *Server) pump(ctx context.Context, e *eventWriter, events <-chan event, ends <-chan ended, over <-chan struct{}, open int, closed func(ended) event) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	defer e.rc.SetWriteDeadline(time.Time{}) //nolint:errcheck // the connection goes on, if it can
	for open > 0 {
		var err error
		select {
		case ev := <-events:
			switch {
			case closedBy(over): // it came first, or might have
				err, open = e.event(lastEvent(credentialOver)), 0
			case ev.name != "":
				err = e.event(ev)
			}
			ev.over()
		case <-over:
			err, open = e.event(lastEvent(credentialOver)), 0
		case end := <-ends:
			open--
			if p := problemOf(end.err); p.Code == "internal" {
				s.log.Error("a subscription ended with a fault", "error", end.err)
			}
			err = e.event(closed(end))
		case <-beat.C:
			err = e.comment("beat")
		case <-s.closing:
			err = e.event(lastEvent(problem("shutting_down", "the server is going down; connect again")))
			open = 0
		case <-ctx.Done():
			return
		}
		if err != nil {
			return // the client has gone, or reads too slowly
		}
	}
}

func closedBy(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lastEvent is the end of a whole stream.
func lastEvent(p *Problem) event {
	return event{name: "end", data: problemText(p)}
}

func problemText(p *Problem) []byte {
	text, err := p.MarshalJSON()
	if err != nil {
		text, _ = (&Problem{Code: p.Code, Detail: p.Detail}).MarshalJSON() // strings alone always marshal
	}
	return text
}

// contained runs a subscription; a panic in it is its error and ends no other stream.
func contained(ctx context.Context, sub subscription, turn Turn, out func(event) error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic in a subscription: %v", fault)
		}
	}()
	if err = sub(ctx, turn, out); err == nil && ctx.Err() == nil {
		err = problem("unavailable", "the subscription has ended; open it again")
	}
	return err
}
