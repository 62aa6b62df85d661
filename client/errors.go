package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Retry says what a caller can do about an error.
type Retry string

// The retry classes.
const (
	Never Retry = "never" // change the request
	Now   Retry = "now"   // read again, then try again
	After Retry = "after" // wait RetryAfter, then try again
)

// Codes of errors that are the client's own; the server's are in its table of errors.
const (
	CodeNetwork    = "network"    // no answer came
	CodeTimeout    = "timeout"    // the client's own limit lapsed
	CodeUnexpected = "unexpected" // the answer is not of this API
)

// Error is a request that failed.
type Error struct {
	Code       string
	Status     int // HTTP; 0 when there was no answer
	Title      string
	Detail     string
	Type       string // where the code is documented
	Retry      Retry
	RetryAfter time.Duration  // for After, where the server says
	Members    map[string]any // everything that the server said
	Err        error          // why there was no answer
}

func (e *Error) Error() string {
	text := e.Detail
	if text == "" {
		text = e.Title
	}
	if text == "" {
		text = http.StatusText(e.Status)
	}
	return fmt.Sprintf("%s (%s)", text, e.Code)
}

func (e *Error) Unwrap() error { return e.Err }

// HasCode tells whether err is an *[Error] with one of the codes.
func HasCode(err error, codes ...string) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range codes {
		if e.Code == code {
			return true
		}
	}
	return false
}

// errorOf reads the problem of an answer of the server at base.
func errorOf(base string, resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, Retry: Never}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil {
		e.Members = map[string]any{}
		if json.Unmarshal(text, &e.Members) != nil {
			e.Members = nil
		}
	}
	e.fill(base)
	if e.Code == "" { // not of this API: a proxy, another server
		e.Code, e.Title = CodeUnexpected, "The answer is not of this API"
		e.Detail = strings.TrimSpace(string(text[:min(len(text), 200)]))
		if resp.StatusCode >= 500 {
			e.Retry = After
		}
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// fill takes the fixed members of a problem. Its documentation may be on the server itself.
func (e *Error) fill(base string) {
	word := func(name string) string {
		text, _ := e.Members[name].(string)
		return text
	}
	e.Code, e.Title, e.Detail, e.Type = word("code"), word("title"), word("detail"), word("type")
	if strings.HasPrefix(e.Type, "/") {
		e.Type = base + e.Type
	}
	if retry := Retry(word("retry")); retry != "" {
		e.Retry = retry
	}
	if status, ok := e.Members["status"].(float64); ok && e.Status == 0 {
		e.Status = int(status)
	}
	if seconds, ok := e.Members["retryAfter"].(float64); ok {
		e.RetryAfter = time.Duration(seconds * float64(time.Second))
	}
}

// unreachable is the error of a request without an answer. The end of the caller's own context is told as
// it is.
func unreachable(ctx context.Context, server string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, errTimeout) {
			return cause
		}
		return &Error{Code: CodeTimeout, Title: "No answer in time", Detail: errTimeout.Error(), Retry: After, Err: err}
	}
	return &Error{Code: CodeNetwork, Title: "The server can not be reached",
		Detail: fmt.Sprintf("no answer from %s: %v; is `hubmesh serve` running there?", server, innermost(err)), Retry: After, Err: err}
}

// innermost is the last error of a chain: what the operating system said.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
