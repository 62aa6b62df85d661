package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hubmesh/hubmesh/client"
)

// The exit codes, so that scripts can tell failures apart.
const (
	exitOK       = 0
	exitFailed   = 1 // anything else
	exitUsage    = 2 // the command line or the input is wrong
	exitNotThere = 3 // no such thing, or not yours to read
	exitDenied   = 4 // not allowed, or the token is not good
	exitNotNow   = 5 // transient: try again later
	exitConflict = 6 // something is in the way: it exists, or has changed
)

const exitHelp = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not there, 4 not allowed, 5 not now (try again), 6 conflict."

// errInterrupted is the end that the person wanted.
var errInterrupted = errors.New("interrupted")

// usageError is a mistake on the command line or in what was given.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage marks err as a mistake of the caller.
func usage(err error) error { return &usageError{err} }

// codeOf is the exit code of an error.
func codeOf(err error) int {
	var bad *usageError
	var e *client.Error
	switch {
	case errors.As(err, &bad):
		return exitUsage
	case !errors.As(err, &e):
		return exitFailed
	}
	switch e.Status {
	case http.StatusNotFound:
		return exitNotThere
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitDenied
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	}
	if e.Retry == client.After {
		return exitNotNow
	}
	if client.HasCode(err, "bad_request", "invalid_path", "invalid_query", "invalid_json", "invalid_patch") {
		return exitUsage // the same as what is found to be wrong before it is sent
	}
	return exitFailed
}

// explain says what went wrong and what to do.
func explain(w io.Writer, err error) {
	var e *client.Error
	if !errors.As(err, &e) {
		fmt.Fprintf(w, "hubmesh: %s\n", plainLines(err.Error()))
		return
	}
	fmt.Fprintf(w, "hubmesh: %s\n", plain(err.Error()))
	switch {
	case e.Status == http.StatusUnauthorized:
		fmt.Fprintln(w, "  pass --token-file FILE, or set HUBMESH_TOKEN to a token that is good")
	case e.Retry == client.Now:
		fmt.Fprintln(w, "  read it again, then try again")
	case e.Retry == client.After && e.RetryAfter > 0:
		fmt.Fprintf(w, "  try again in %v\n", e.RetryAfter.Round(time.Second))
	case e.Retry == client.After:
		fmt.Fprintln(w, "  try again later")
	}
	if e.Type != "" {
		fmt.Fprintf(w, "  see %s\n", plain(e.Type))
	}
}
