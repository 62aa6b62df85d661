package httpapi

import (
	"context"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
)

// closed are top-level names below which nothing is but what the table says.
var closed = []string{"api", "static", "debug"}

// Reserved tells whether a top-level name is one of this layer's own, so that the page of a space of that
// name could not be opened.
func Reserved(name string) bool {
	if slices.Contains(closed, name) || name == robots || name == favicon || name == index {
		return true
	}
	return slices.ContainsFunc(operations, func(op operation) bool {
		first, _, _ := strings.Cut(strings.TrimPrefix(op.path, "/"), "/")
		return first == name
	})
}

// routes builds the mux from the table: one pattern a path, and the methods below it.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	byPattern := map[string]map[string]*operation{}
	for i := range operations {
		op := &operations[i]
		if byPattern[op.pattern()] == nil {
			byPattern[op.pattern()] = map[string]*operation{}
		}
		byPattern[op.pattern()][op.method] = op
	}
	for pattern, methods := range byPattern {
		e := &endpoint{s: s, methods: methods, allow: allowed(methods), label: pattern}
		mux.Handle(pattern, e)
		if bare, wild := strings.CutSuffix(pattern, "/{rest...}"); wild && byPattern[bare] == nil {
			mux.Handle(bare, slashed(e))
		}
	}
	pages := map[string]*operation{http.MethodGet: {method: http.MethodGet, path: "/", open: true, handle: (*Server).servePage}}
	mux.Handle("/", &endpoint{s: s, methods: pages, allow: allowed(pages), label: "page"})
	nothing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem("not_found", "there is no such route").Write(w)
	})
	for _, name := range closed {
		mux.Handle("/"+name, nothing)
		mux.Handle("/"+name+"/", nothing)
	}
	return mux
}

// slashed serves a route without its last slash as the route with it: the mux would redirect, with a page.
func slashed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := *r
		u := *r.URL
		u.Path += "/"
		if u.RawPath != "" {
			u.RawPath += "/"
		}
		q.URL = &u
		next.ServeHTTP(w, &q)
	})
}

// allowed is the Allow header of the methods; HEAD comes with GET.
func allowed(methods map[string]*operation) string {
	names := []string{http.MethodOptions}
	for method := range methods {
		names = append(names, method)
		if method == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	sort.Strings(names)
	return strings.Join(names, ", ")
}

// endpoint serves one pattern.
type endpoint struct {
	s       *Server
	methods map[string]*operation
	allow   string
	label   string
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec, ok := w.(*recorder)
	if !ok {
		rec = &recorder{ResponseWriter: w}
	}
	began := time.Now()
	defer func() { e.s.metrics.observe(e.label, r.Method, rec.status, time.Since(began)) }()
	if err := e.serve(rec, r); err != nil {
		e.s.fail(rec, r, err)
	}
}

func (e *endpoint) serve(w *recorder, r *http.Request) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op, ok := e.methods[method]
	if !ok {
		w.Header().Set("Allow", e.allow)
		if method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		return problem("method_not_allowed", "this route takes "+e.allow)
	}
	if err := sameOrigin(r); err != nil {
		return err
	}
	if op.body == "" && r.ContentLength != 0 {
		if err := e.s.stray(w, r); err != nil {
			return err
		}
	}
	if !op.open {
		id, credential, err := e.s.caller(r, op)
		if err != nil {
			return err
		}
		ctx := r.Context()
		if credential != nil {
			ctx = context.WithValue(ctx, credentialKey{}, credential)
		}
		r = r.WithContext(message.WithIdentity(ctx, id))
		if op.body != "" && e.s.Rights != nil && e.s.Rights.HoldsNothing(r.Context()) {
			// Nothing is read of what somebody sends who can not be allowed anything.
			refuseBody(w, r, problem("unauthenticated", "nothing is granted to visitors; send a token, or sign in"), lingerFor)
			return nil
		}
		if op.body != "" && r.ContentLength != 0 {
			over, release, err := followed(ctx)
			if err != nil {
				return err
			}
			defer release()
			r.Body = &vouched{ReadCloser: r.Body, over: over}
		}
	}
	if op.needs != nil && !op.needs(&e.s.Services) {
		return problem("unavailable", "this process does not serve this route")
	}
	if op.admin {
		if err := e.s.requireAdmin(r, op); err != nil {
			return err
		}
	}
	return op.handle(e.s, w, r)
}

// caller finds out who calls, once (CR-2). On the content route a credential that is not good makes the
// caller Anonymous: 401 is never produced there (edge.md §1.2).
func (s *Server) caller(r *http.Request, op *operation) (*message.Identity, Credential, error) {
	if s.Caller == nil {
		return message.AnonymousIdentity(), nil, nil
	}
	id, credential, err := s.Caller.Authenticate(r)
	if err != nil && op.asKnown && problemOf(err).Code == "unavailable" {
		if was, with, unknown := s.Caller.AsKnown(r); unknown == nil {
			id, credential, err = was, with, nil
		}
	}
	switch {
	case err == nil && id == nil:
		return message.AnonymousIdentity(), nil, nil
	case err != nil && op.degrades && problemOf(err).Code == "unauthenticated":
		return message.AnonymousIdentity(), nil, nil
	}
	return id, credential, err
}

// credentialKey is where the credential of a request stands in its context.
type credentialKey struct{}

// followed returns a channel that is closed once the credential that ctx carries does not count any more;
// without one it never is.
func followed(ctx context.Context) (over <-chan struct{}, release func(), err error) {
	if c, ok := ctx.Value(credentialKey{}).(Credential); ok {
		return c.Follow(ctx)
	}
	return nil, func() {}, nil
}

func (s *Server) requireAdmin(r *http.Request, op *operation) error {
	if s.Rights == nil {
		return problem("unavailable", "this process does not know who is Admin")
	}
	admin, err := s.Rights.IsAdmin(r.Context())
	if err != nil && op.asKnown && s.Rights.WasAdmin(r.Context()) {
		return nil
	}
	if err != nil {
		return err
	}
	if !admin {
		return problem("forbidden", "this is for an Admin of the root scope")
	}
	return nil
}

var crossOrigin = http.NewCrossOriginProtection()

// sameOrigin refuses what another site's page makes a browser send. A bearer token is not sent by itself,
// so a request that carries one is its sender's own.
func sameOrigin(r *http.Request) error {
	if r.Header.Get("Authorization") != "" {
		return nil
	}
	if err := crossOrigin.Check(r); err != nil {
		return problem("forbidden", "this request was made by a page of another site")
	}
	return nil
}
