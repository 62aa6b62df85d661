package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"

	"github.com/hubmesh/hubmesh/internal/httpapi"
)

const (
	// checkEvery is how often the front door asks a silo whether it is ready, and checkWithin how long it
	// waits for the answer. A silo that does not answer counts as gone.
	checkEvery  = 150 * time.Millisecond
	checkWithin = 400 * time.Millisecond
)

// siloHeader names the silo that answered.
const siloHeader = "Hubmesh-Silo"

var (
	errOut   = errors.New("the silo does not answer any more")
	errNoOne = errors.New("no silo is ready")
)

// unknownError answers a write whose outcome is not known: the silo that had it does not answer any more.
type unknownError struct {
	silo string
	err  error
}

func (e *unknownError) Error() string { return fmt.Sprintf("%s: %v", e.silo, e.err) }
func (e *unknownError) Unwrap() error { return e.err }

// door is how the front door sees one silo. It is guarded by the silo's lock.
type door struct {
	ready   bool
	waiting []string
	in      context.Context // ends when the silo does not answer any more; nil: it does not
	out     context.CancelCauseFunc

	requests, failed, streams int
}

// front sends each request to a silo that is ready.
type front struct {
	d     *Demo
	proxy *httputil.ReverseProxy
	// reads go over connections that are kept; writes over one each, so that one that could not be dialled was
	// certainly not sent.
	reads, writes *http.Transport
	next          atomic.Uint32
	mux           *http.ServeMux
}

func newFront(d *Demo) *front {
	dial := (&net.Dialer{Timeout: checkWithin}).DialContext
	f := &front{d: d, mux: http.NewServeMux(),
		reads:  &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, DisableCompression: true},
		writes: &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true}}
	f.proxy = &httputil.ReverseProxy{Transport: f, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host
		r.Out.Host = r.In.Host // the silo judges where a request comes from by it
		r.SetXForwarded()
	}, ErrorHandler: f.failed, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	f.routes()
	for _, s := range d.silos {
		d.work.Go(func() { f.check(s) })
	}
	return f
}

func (f *front) close() {
	f.reads.CloseIdleConnections()
	f.writes.CloseIdleConnections()
}

// check asks a silo again and again whether it is ready, until the end of the demonstration.
func (f *front) check(s *silo) {
	every := time.NewTicker(checkEvery)
	defer every.Stop()
	for {
		select {
		case <-f.d.ending:
			s.door.shut(s)
			return
		case <-every.C:
			f.ask(s)
		}
	}
}

// ask asks a silo once.
func (f *front) ask(s *silo) {
	s.mu.Lock()
	url := "http://" + s.addr + "/ready"
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(context.Background(), checkWithin, errOut)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return
	}
	var said struct {
		Waiting []string `json:"waiting"`
	}
	answer, err := f.writes.RoundTrip(r) // a connection of its own: one that is kept says nothing about the next
	if err != nil {
		s.door.shut(s)
		return
	}
	defer answer.Body.Close()
	_ = json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&said) // what it waits for is told where it is known
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.door
	if d.in == nil {
		d.in, d.out = context.WithCancelCause(context.Background())
	}
	d.ready, d.waiting = answer.StatusCode == http.StatusOK, said.Waiting
}

// shut breaks what hangs on a silo that does not answer.
func (d *door) shut(s *silo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.ready, d.waiting = false, nil
	if d.in != nil {
		d.out(errOut)
		d.in, d.out = nil, nil
	}
}

// enter counts a request to a silo that is ready.
func (d *door) enter(s *silo) (in context.Context, addr string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !d.ready || d.in == nil {
		return nil, "", false
	}
	d.requests++
	return d.in, s.addr, true
}

func (d *door) count(s *silo, which *int, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*which += by
}

// only is the silo that a request is for, where it is for one.
type only struct{}

// order lists the silos in the order in which a request tries them.
func (f *front) order(r *http.Request) []*silo {
	if s, ok := r.Context().Value(only{}).(*silo); ok {
		return []*silo{s}
	}
	all := f.d.silos
	first := int(f.next.Add(1)) % len(all)
	return append(append([]*silo{}, all[first:]...), all[:first]...)
}

// RoundTrip implements http.RoundTripper. A request goes to the next silo where the first one was certainly not
// reached, or where a second answer can do no harm.
func (f *front) RoundTrip(r *http.Request) (*http.Response, error) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	by := f.writes
	if reads {
		by = f.reads
	}
	for _, s := range f.order(r) {
		d := &s.door
		in, addr, ok := d.enter(s)
		if !ok {
			continue
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		stop := context.AfterFunc(in, func() { cancel(context.Cause(in)) })
		one := r.Clone(ctx)
		if r.Body != nil {
			one.Body = io.NopCloser(r.Body) // it is closed where the silo is not reached, and is still to be read by the next
		}
		one.URL.Host = addr
		answer, err := by.RoundTrip(one)
		if err == nil {
			answer.Header.Set(siloHeader, s.name)
			d.count(s, &d.streams, 1)
			answer.Body = &body{ReadCloser: answer.Body, end: func() {
				stop()
				cancel(nil)
				d.count(s, &d.streams, -1)
			}}
			return answer, nil
		}
		stop()
		cancel(nil)
		if gone := r.Context().Err(); gone != nil {
			return nil, gone
		}
		d.count(s, &d.failed, 1)
		var dial *net.OpError
		notSent := errors.As(err, &dial) && dial.Op == "dial"
		if notSent {
			d.shut(s) // it has no server any more
		}
		if !notSent && !reads {
			return nil, &unknownError{s.name, err}
		}
	}
	return nil, errNoOne
}

// body is that of an answer; end runs once.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.end != nil {
		b.end()
		b.end = nil
	}
	return b.ReadCloser.Close()
}

// failed answers a request that no silo has answered.
func (f *front) failed(w http.ResponseWriter, _ *http.Request, err error) {
	p := &httpapi.Problem{Code: "unavailable", Detail: "No silo is ready. Start one, or wait a moment.", Retry: time.Second}
	var unknown *unknownError
	if errors.As(err, &unknown) {
		p.Detail = fmt.Sprintf("%s did not answer any more (%v); whether it has done this is not known.", unknown.silo, unknown.err)
		p.Members = map[string]any{"outcome": "unknown"}
		w.Header().Set(siloHeader, unknown.silo)
	}
	p.Write(w)
}
