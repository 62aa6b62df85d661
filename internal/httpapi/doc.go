// Package httpapi is the HTTP surface: it translates requests into calls of small interfaces and their
// answers and errors into HTTP, and decides nothing itself.
//
// It owns the table of routes (routes.go), from which the mux, the OpenAPI document and the comparison
// with docs/api.md are made; the table of error codes (codes.go), from which docs/errors.md is made;
// the form of paths (CR-3), conditions, bodies and their limits; server-sent events; the headers of
// content (edge.md §1.3) and of the page. Who calls is found by a [Caller] once a request and travels in
// the context (CR-2). What answers is whatever implements the interfaces of services.go; a service that
// is not there makes its routes answer "unavailable".
//
// An error that carries its own code implements ProblemCode() string, and where it helps
// RetryAfter() time.Duration and ProblemMembers() map[string]any; see mapping.go for the others.
package httpapi
