package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

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
	return s.writeJSON(w, r, http.StatusAccepted, map[string]any{"activity": activity})
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
	return s.writeJSON(w, r, http.StatusOK, known)
}

func (s *Server) cluster(w http.ResponseWriter, r *http.Request) error {
	status, err := s.Inspector.Cluster(r.Context())
	if err != nil {
		return err
	}
	return s.writeJSON(w, r, http.StatusOK, status)
}

// clusterEvery is how often a watched cluster is asked.
const clusterEvery = time.Second

// watchCluster streams what every silo says of itself.
func (s *Server) watchCluster(w http.ResponseWriter, r *http.Request) error {
	sub := func(ctx context.Context, turn Turn, out func(event) error) error {
		every := time.NewTicker(clusterEvery)
		defer every.Stop()
		for {
			// One by one: what the silos say is in memory until it has been written.
			if err := turn.Begin(ctx); err != nil {
				return err
			}
			err := s.tellCluster(ctx, out)
			turn.End()
			if err != nil {
				return err
			}
			select {
			case <-every.C:
			case <-ctx.Done():
				return errStreamOver
			}
		}
	}
	return s.openStream(w, r, []subscription{sub}, true, func(end ended) event { return lastEvent(problemOf(end.err)) })
}

func (s *Server) tellCluster(ctx context.Context, out func(event) error) error {
	status, err := s.Inspector.Cluster(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return out(event{name: "status", data: text})
}

func (s *Server) lapses(w http.ResponseWriter, r *http.Request) error {
	recent, err := s.Inspector.Lapses(r.Context())
	if err != nil {
		return err
	}
	return s.writeJSON(w, r, http.StatusOK, recent)
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
	return s.writeJSON(w, r, http.StatusOK, map[string]any{
		"subject": id.Subject, "name": id.Name, "anonymous": id.IsAnonymous(), "admin": admin,
	})
}

func (s *Server) alive(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	return s.writeJSON(w, r, http.StatusOK, map[string]bool{"alive": true})
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
	return s.writeJSON(w, r, status, map[string]any{"ready": len(waiting) == 0, "waiting": waiting})
}

func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) error {
	s.metrics.handler.ServeHTTP(w, r)
	return nil
}
