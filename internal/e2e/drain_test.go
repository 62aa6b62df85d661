package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// callers ask one silo over connections that are kept, until it takes none any more.
type callers struct {
	work sync.WaitGroup

	mu       sync.Mutex
	answered int
	closed   map[string]int // requests that were not answered on a connection that stood, by error
}

// call starts callers that read and write nodes through a silo: some without a pause, some now and then, so that
// their connections are idle meanwhile.
func (p *silo) call(nodes []string) *callers {
	c := &callers{closed: map[string]int{}}
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	p.t.Cleanup(transport.CloseIdleConnections)
	for i := range 96 {
		c.work.Go(func() {
			for n := 0; ; n++ {
				method, body := http.MethodGet, ""
				if n%2 == 0 {
					method, body = http.MethodPatch, fmt.Sprintf(`{"content":{"n":%d}}`, n)
				}
				if over := c.note(p.request(transport, method, "/api/nodes/"+nodes[i%len(nodes)], body)); over {
					return
				}
				if i%3 > 0 {
					<-time.After(time.Duration(i) * time.Millisecond) // a client that has a pause
				}
			}
		})
	}
	return c
}

func (p *silo) request(by http.RoundTripper, method, path, body string) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience, errors.New("no answer"))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := by.RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// note counts an outcome; true once no connection is taken any more.
func (c *callers) note(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.answered++
	case errors.Is(err, syscall.ECONNREFUSED):
		return true
	default:
		c.closed[err.Error()]++
	}
	return false
}

// issue 5: a rolling restart loses no request; decision 6
func TestASiloThatStopsAnswersEveryRequestThatItTookAndClosesNoConnectionUnderOne(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	a := w.start("a", "b")[0]
	nodes := paths(16)
	a.owned(nodes)
	for round := range 3 {
		c := a.call(nodes)
		<-time.After(time.Second) // of load
		began := time.Now()
		if err := a.stop(); err != nil {
			t.Errorf("%v:\n%s", err, a.log)
		}
		took := time.Since(began)
		c.work.Wait()
		t.Logf("round %d: stopped in %v, %d requests answered", round, took, c.answered)
		for err, n := range c.closed {
			t.Errorf("%d requests were not answered: %s", n, err)
		}
		a = w.start2("a")
	}
}
