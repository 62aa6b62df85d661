package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
)

// holdings counts the bytes of bodies that have come and of answers that are on their way. Whoever sends much
// and never ends, or asks for much and does not read, is refused before it costs the process its memory, and
// costs nobody else theirs. The zero value takes nothing.
type holdings struct {
	most, each, visitors int64 // of all, of one subject, and of all visitors together

	mu  sync.Mutex
	all int64
	of  map[string]int64
}

// take counts n bytes more for a subject, or refuses them. A subject that holds something holds at most as much as
// is left free for others, too: few who take all they can leave room for whoever comes next. One request's body and
// answer are let through however large they are, while nothing else is held; mine is what that request holds already.
func (h *holdings) take(subject string, n, mine int64) error {
	most := h.each
	if subject == message.SubjectAnonymous {
		most = h.visitors
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.of[subject]
	switch {
	case h.all+n > h.most && h.all > mine:
		return problem("overloaded", "the bodies and answers on their way are as many bytes as this process holds at a time")
	case held+n > min(most, h.most-h.all) && held > mine:
		return problem("overloaded", fmt.Sprintf("the bodies and answers of '%s' on their way are as many bytes as are held of one subject at a time; read what was asked for, or send less at once", subject))
	}
	if h.of == nil {
		h.of = map[string]int64{}
	}
	h.all, h.of[subject] = h.all+n, held+n
	return nil
}

func (h *holdings) give(subject string, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all -= n
	if h.of[subject] -= n; h.of[subject] <= 0 {
		delete(h.of, subject)
	}
}

// subjectOf is who a request counts for.
func subjectOf(r *http.Request) string {
	if id := message.IdentityFrom(r.Context()); id != nil && id.Subject != "" {
		return id.Subject
	}
	return message.SubjectAnonymous
}

// hold counts n bytes more for a request, until it is answered.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, n int64) error {
	rec, ok := w.(*recorder)
	if !ok {
		return nil // a writer that nobody waits for
	}
	if rec.held == 0 {
		rec.subject = subjectOf(r)
	}
	if err := s.held.take(rec.subject, n, rec.held); err != nil {
		return err
	}
	rec.held += n
	return nil
}

// holdAnswer counts an answer, in the place of the body: that is done with. One to a request that has changed something is
// not refused, as the change is made: it waits for room, and the connection is cut where none comes.
func (s *Server) holdAnswer(w http.ResponseWriter, r *http.Request, n int64) error {
	if rec, ok := w.(*recorder); ok {
		s.free(rec)
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return s.hold(w, r, n)
	}
	err := s.awaitRoom(r.Context(), func() error { return s.hold(w, r, n) })
	if err != nil && r.Context().Err() != nil {
		return r.Context().Err()
	}
	if err != nil {
		s.log.Warn("an answer was not sent, as answers that nobody reads are in its way", "method", r.Method, "path", r.URL.EscapedPath(), "bytes", n)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// roomEvery is how often what is refused asks for room again.
const roomEvery = 50 * time.Millisecond

// awaitRoom calls take until it is not refused, for as long as an event might take to be written, or until ctx ends; the
// error is the last refusal.
func (s *Server) awaitRoom(ctx context.Context, take func() error) error {
	err := take()
	for until := time.Now().Add(s.bounds.Own(budget.Flush)); err != nil && time.Now().Before(until); {
		select {
		case <-time.After(roomEvery):
		case <-ctx.Done():
			return err
		}
		err = take()
	}
	return err
}

// free ends what a request has held.
func (s *Server) free(w *recorder) {
	if w.held > 0 {
		s.held.give(w.subject, w.held)
		w.held = 0
	}
}
