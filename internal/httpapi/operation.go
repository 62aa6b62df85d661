package httpapi

import (
	"net/http"
	"strings"

	"github.com/hubmesh/hubmesh/internal/message"
)

func (s *Server) startImport(w http.ResponseWriter, r *http.Request) error {
	var want ImportRequest
	if err := s.decode(w, r, &want); err != nil {
		return err
	}
	if want.Source == "" {
		return problem("bad_request", "source is the folder on the server that is imported").with("field", "source")
	}
	activity, err := s.Importer.Import(r.Context(), want)
	if err != nil {
		return err
	}
	w.Header().Set("Location", nodesPrefix+encodePath(activity))
	return writeJSON(w, http.StatusAccepted, map[string]any{"activity": activity})
}

func (s *Server) why(w http.ResponseWriter, r *http.Request) error {
	parts, err := segments(r, "/api/why/")
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return problem("invalid_path", "name a node path or a process address")
	}
	known, err := s.Inspector.Why(r.Context(), strings.Join(parts, "/"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, known)
}

func (s *Server) cluster(w http.ResponseWriter, r *http.Request) error {
	status, err := s.Inspector.Cluster(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, status)
}

func (s *Server) lapses(w http.ResponseWriter, r *http.Request) error {
	recent, err := s.Inspector.Lapses(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, recent)
}

func (s *Server) whoami(w http.ResponseWriter, r *http.Request) error {
	id := message.IdentityFrom(r.Context())
	admin := false
	if s.Rights != nil {
		var err error
		if admin, err = s.Rights.IsAdmin(r.Context()); err != nil {
			return err
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{
		"subject": id.Subject, "name": id.Name, "anonymous": id.IsAnonymous(), "admin": admin,
	})
}

func (s *Server) alive(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, http.StatusOK, map[string]bool{"alive": true})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	waiting := []string{}
	if s.Readiness != nil {
		waiting = append(waiting, s.Readiness.Waiting(r.Context())...)
	}
	status := http.StatusOK
	if len(waiting) > 0 {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	return writeJSON(w, status, map[string]any{"ready": len(waiting) == 0, "waiting": waiting})
}

func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	s.metrics.handler.ServeHTTP(w, r)
	return nil
}
