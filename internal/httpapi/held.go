package httpapi

import (
	"fmt"
	"net/http"
	"sync"

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
// is left free for others, too: few who take all they can leave room for whoever comes next. One body or answer is
// let through however large it is, while the subject has no other.
func (h *holdings) take(subject string, n int64) error {
	most := h.each
	if subject == message.SubjectAnonymous {
		most = h.visitors
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.of[subject]
	switch {
	case h.all+n > h.most && h.all > 0:
		return problem("overloaded", "the bodies and answers on their way are as many bytes as this process holds at a time")
	case held+n > min(most, h.most-h.all) && held > 0:
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
	subject := subjectOf(r)
	if err := s.held.take(subject, n); err != nil {
		return err
	}
	rec.subject, rec.held = subject, rec.held+n
	return nil
}

// free ends what a request has held.
func (s *Server) free(w *recorder) {
	if w.held > 0 {
		s.held.give(w.subject, w.held)
		w.held = 0
	}
}
