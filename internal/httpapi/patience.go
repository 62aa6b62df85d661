package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
)

// A client that sends or takes bytes one by one holds a connection, and what was allocated for it. So each body
// has a bound as a whole, and one of a file, which may take long, has one for each chunk.

const (
	chunkBytes = 64 << 10 // of an upload or an answer; each must come, or go, within its bound
	strayBytes = 64 << 10 // of a body that a route does not want
)

// readUntil bounds what is read of the connection; a writer without deadlines, such as a test's, reads without.
func readUntil(w http.ResponseWriter, at time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(at) //nolint:errcheck // of a closed connection: the read says so
}

// awaitBody bounds the body of a request before anything of it is read: what no handler reads the HTTP server throws
// away after the answer, and would wait for.
func (s *Server) awaitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		readUntil(w, time.Now().Add(s.bounds.Own(budget.HTTPBody)))
	}
}

// whole runs read, which reads a whole body, within the bound on bodies.
func (s *Server) whole(w http.ResponseWriter, read func() error) error {
	wait := s.bounds.Own(budget.HTTPBody)
	readUntil(w, time.Now().Add(wait))
	err := read()
	// Else the server would take the lapse of a deadline, while the request is served, for a client that has gone.
	readUntil(w, time.Time{})
	return bodyFault(err, fmt.Sprintf("the body did not come whole within %v", wait))
}

// stray takes the body of a request to a route that wants none out of the way.
func (s *Server) stray(w http.ResponseWriter, r *http.Request) error {
	return s.whole(w, func() error {
		_, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, strayBytes))
		return err
	})
}

// bodyFault says what kept a body from being read.
func bodyFault(err error, late string) error {
	var size *http.MaxBytesError
	var said *Problem
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.As(err, &size), errors.As(err, &said):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem("body_timeout", late)
	}
	return problem("bad_request", "the body ended before its end")
}

// patient reads an upload: each chunk of it may take its time, so that a slow one goes on, and a dead one, or one
// that sends a byte now and then, ends.
type patient struct {
	io.Reader
	w    http.ResponseWriter
	wait time.Duration
	left int // bytes of the chunk that is awaited
}

func (p *patient) Read(b []byte) (int, error) {
	if p.left <= 0 {
		p.left = chunkBytes
		readUntil(p.w, time.Now().Add(p.wait))
	}
	n, err := p.Reader.Read(b)
	p.left -= n
	if err != nil {
		p.done()
	}
	return n, bodyFault(err, fmt.Sprintf("less than %d bytes of the body came within %v", chunkBytes, p.wait))
}

// done takes the bound away; see whole.
func (p *patient) done() { readUntil(p.w, time.Time{}) }

// inChunks writes an answer. A client that does not take a chunk of it within its bound is given up.
func inChunks(w http.ResponseWriter, text []byte) (taken bool) {
	rec, bounded := w.(*recorder)
	rc := http.NewResponseController(w)
	for len(text) > 0 {
		n := min(len(text), chunkBytes)
		if bounded {
			_ = rc.SetWriteDeadline(time.Now().Add(rec.wait)) //nolint:errcheck // of a closed connection: the write says so
		}
		if _, err := w.Write(text[:n]); err != nil {
			return false // the caller has gone
		}
		text = text[n:]
	}
	return true
}

// What a client still sends after it was told that its body is too large is thrown away within these
// bounds, as many clients read an answer only once they have sent everything.
const (
	lingerBytes = 256 << 20
	lingerFor   = 2 * time.Second
)

// refuseBody answers a request whose body is not read to its end, and closes the connection. It answers first
// and then takes what is still on its way, for as long as linger: closing at once would reset the connection
// under the answer.
func refuseBody(w http.ResponseWriter, r *http.Request, p *Problem, linger time.Duration) {
	control := http.NewResponseController(w)
	if control.EnableFullDuplex() != nil { // a protocol that needs no such care
		p.Write(w)
		return
	}
	w.Header().Set("Connection", "close")
	p.Write(w)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(linger)) != nil || linger <= 0 {
		return // with the deadline over, the server does not wait for the rest either
	}
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) //nolint:errcheck // it ends when the client stops
}
