package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/node"
)

// Services are what answers. One that is nil makes its routes answer "unavailable", except that without
// a Caller everybody is Anonymous and without Readiness the process is ready.
type Services struct {
	Nodes     Nodes
	Bulk      Bulk
	Tree      Tree
	Renderer  Renderer
	Watcher   Watcher
	Content   Content
	Files     Files
	Importer  Importer
	Inspector Inspector
	Rights    Rights
	Caller    Caller
	Sessions  Sessions
	Tokens    Tokens
	TokenList TokenLister
	Readiness Readiness
}

// Limits bound what a request may bring. A zero field takes the default.
type Limits struct {
	BodyBytes      int64       // JSON bodies; 8 MiB
	UploadBytes    int64       // uploads; 200 MiB
	Streams        int         // open event streams of the process; 10,000
	SubjectStreams int         // of one subject; 256. Anonymous, who are many, have an eighth of Streams
	HeldBytes      int64       // of bodies and answers on their way; 1 GiB
	SubjectBytes   int64       // of those, of one subject; a quarter of HeldBytes. All visitors together have an eighth
	Node           node.Limits // one node; node.DefaultLimits
}

// Config makes a server.
type Config struct {
	Services
	Limits   Limits
	Bounds   *budget.Table        // nil: budget.Defaults
	Log      *slog.Logger         // nil: slog.Default
	Registry *prometheus.Registry // what /metrics shows; nil: one with this server's own metrics
	Page     fs.FS                // the built page; nil: none
	Version  string               // of the program, for the OpenAPI document
}

// Server is the handler of all routes. Close ends its streams.
type Server struct {
	Services
	limits Limits
	bounds *budget.Table
	log    *slog.Logger

	handler  http.Handler
	metrics  *metrics
	icons    *icons
	page     *page
	help     asset         // the page of errors
	document []byte        // OpenAPI
	requests atomic.Uint64 // numbers requests, for the log

	held       holdings
	streams    chan struct{} // a place for each open stream
	streamsOf  streamCounts
	closing    chan struct{} // closed by Close
	closeOnce  sync.Once
	streamsEnd sync.WaitGroup
}

// New returns a server. Its error is a fault of the program or of the built page.
func New(c Config) (*Server, error) {
	s := &Server{Services: c.Services, limits: c.Limits.withDefaults(), bounds: c.Bounds, log: c.Log, closing: make(chan struct{})}
	if s.bounds == nil {
		defaults := budget.Defaults()
		s.bounds = &defaults
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.streams = make(chan struct{}, s.limits.Streams)
	s.held.most, s.held.each, s.held.visitors = s.limits.HeldBytes, s.limits.SubjectBytes, s.limits.HeldBytes/8
	registry := c.Registry
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	var err error
	if s.metrics, err = newMetrics(registry); err != nil {
		return nil, err
	}
	if s.icons, err = loadIcons(); err != nil {
		return nil, err
	}
	if s.help, err = loadErrors(); err != nil {
		return nil, err
	}
	if s.page, err = loadPage(c.Page, s.icons.plain); err != nil {
		return nil, err
	}
	if s.document, err = json.MarshalIndent(document(c.Version), "", " "); err != nil {
		return nil, err
	}
	s.handler = s.routes()
	return s, nil
}

func (l Limits) withDefaults() Limits {
	if l.BodyBytes <= 0 {
		l.BodyBytes = 8 << 20
	}
	if l.UploadBytes <= 0 {
		l.UploadBytes = 200 << 20
	}
	if l.SubjectStreams <= 0 {
		l.SubjectStreams = 256
	}
	if l.Streams <= 0 {
		l.Streams = 10_000
	}
	if l.HeldBytes <= 0 {
		l.HeldBytes = 1 << 30
	}
	if l.SubjectBytes <= 0 {
		l.SubjectBytes = l.HeldBytes / 4
	}
	if l.Node == (node.Limits{}) {
		l.Node = node.DefaultLimits
	}
	return l
}

// Close ends every open stream with a "shutting_down" and waits for their handlers. It is called before
// the HTTP server is shut down, which waits for running requests.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.closing) })
	s.streamsEnd.Wait()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := &recorder{ResponseWriter: w, wait: s.bounds.Own(budget.ContentIO)}
	defer s.free(rec)
	s.awaitBody(rec, r)
	defer s.recovered(rec, r)
	secure(rec.Header())
	if !canonical(r.URL.EscapedPath()) {
		// The mux would redirect to the cleaned path; dots and empty segments are refused instead.
		p := problem("invalid_path", "the path has empty segments, or the segments '.' or '..'")
		if isContent(r) {
			p = absent("")
		}
		p.Write(rec)
		return
	}
	s.handler.ServeHTTP(rec, r)
}

// recovered answers a request whose handler panicked, or cuts the connection when the answer had begun.
func (s *Server) recovered(w *recorder, r *http.Request) {
	fault := recover()
	if fault == nil {
		return
	}
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault)
	}
	s.fail(w, r, fmt.Errorf("panic: %v", fault))
}

// fail answers a request with an error. What is internal is logged, with an id that the caller gets.
func (s *Server) fail(w *recorder, r *http.Request, err error) {
	p := problemOf(err)
	if isContent(r) {
		p = contentProblem(p)
	}
	if p.Code == "internal" && r.Context().Err() == nil { // else nobody is there to be told
		id := s.requests.Add(1)
		s.log.Error("a request failed", "request", id, "method", r.Method, "path", r.URL.EscapedPath(), "error", err)
		p = p.with("request", id)
	}
	if w.began {
		if r.Context().Err() == nil {
			s.log.Warn("an answer was cut off", "method", r.Method, "path", r.URL.EscapedPath(), "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	switch p.Code {
	case "too_large":
		refuseBody(w, r, p, lingerFor)
	case "body_timeout":
		refuseBody(w, r, p, 0)
	default:
		p.Write(w)
	}
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	began  bool
	wait   time.Duration // for a chunk of an answer; see inChunks

	subject string // for whom held counts
	held    int64  // bytes; see holdings
}

func (w *recorder) WriteHeader(status int) {
	if status >= 200 {
		w.began = true
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
