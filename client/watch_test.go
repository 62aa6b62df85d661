package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// streams answers each connection with the next script and remembers the Last-Event-ID of each. A script
// that begins with a status is an answer without a stream; after the last script connections are refused
// with 404.
type streams struct {
	mu      sync.Mutex
	scripts []string
	resumed []string
}

func (s *streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumed = append(s.resumed, r.Header.Get("Last-Event-ID"))
	if len(s.scripts) == 0 {
		w.WriteHeader(404)
		fmt.Fprint(w, `{"code":"not_found","retry":"never","detail":"gone"}`)
		return
	}
	script := s.scripts[0]
	s.scripts = s.scripts[1:]
	if script == "503" {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(503)
		fmt.Fprint(w, `{"code":"starting","retry":"after"}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": open\n\n"+script)
}

func full(version int, name string) string {
	return fmt.Sprintf("event: full\nid: %d\ndata: {\"version\":%d,\"node\":{\"path\":\"a\",\"name\":%q,\"version\":%d}}\n\n", version, version, name, version)
}

func patch(version, basedOn int, change string) string {
	return fmt.Sprintf("event: patch\nid: %d\ndata: {\"version\":%d,\"basedOn\":%d,\"patch\":%s}\n\n", version, version, basedOn, change)
}

// follow watches until the watch ends and returns what it saw, the waits, and why it ended.
func follow(t *testing.T, s *streams) (seen []string, waits []time.Duration, err error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	c, err := New(Options{Server: server.URL, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	c.random = func() float64 { return 0.0001 } // 0.8 ms
	o := WatchOptions{Lost: func(_ error, wait time.Duration) { waits = append(waits, wait) }}
	err = c.Watch(t.Context(), "a", o, func(e Event) error {
		seen = append(seen, fmt.Sprintf("%s %d %s", e.Kind, e.Version, e.Node.Name))
		return nil
	})
	return seen, waits, err
}

func TestAWatchGoesOnFromTheVersionHeldAfterALostConnection(t *testing.T) {
	s := &streams{scripts: []string{
		full(3, "A") + patch(4, 3, `{"name":"B"}`) + "event: full\nid: 5\ndata: {\"version\":5", // cut off in the middle
		patch(6, 4, `{"name":"C"}`) + patch(6, 4, `{"name":"again"}`) + full(5, "older"),
		"event: deleted\nid: 7\ndata: {\"version\":7}\n\n" + full(8, "D"),
	}}
	seen, waits, err := follow(t, s)
	if !HasCode(err, "not_found") {
		t.Fatalf("the end: %v", err)
	}
	if diff := cmp.Diff([]string{"full 3 A", "patch 4 B", "patch 6 C", "deleted 7 ", "full 8 D"}, seen); diff != "" {
		t.Errorf("seen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "4", "6", "8"}, s.resumed); diff != "" {
		t.Errorf("resumed from (-want +got):\n%s", diff)
	}
	if len(waits) != 3 {
		t.Errorf("waits: %v", waits)
	}
}

func TestAChangeThatDoesNotFollowAsksForTheWholeNode(t *testing.T) {
	s := &streams{scripts: []string{full(3, "A") + patch(9, 8, `{"name":"gap"}`), full(9, "Z")}}
	seen, _, err := follow(t, s)
	if diff := cmp.Diff([]string{"full 3 A", "full 9 Z"}, seen); diff != "" || !HasCode(err, "not_found") {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if s.resumed[1] != "" {
		t.Fatalf("resumed from %q", s.resumed[1])
	}
}

// data §2
func TestAWatchGoesBackWithAServerThatHasLostItsLastVersions(t *testing.T) {
	s := &streams{scripts: []string{full(5, "lost") + full(3, "late") + // the control
		"event: full\nid: 3\ndata: {\"version\":3,\"reset\":true,\"node\":{\"path\":\"a\",\"name\":\"kept\",\"version\":3}}\n\n" + patch(4, 3, `{"name":"B"}`) +
		"event: deleted\ndata: {\"version\":2,\"reset\":true}\n\n"}}
	seen, _, err := follow(t, s)
	if diff := cmp.Diff([]string{"full 5 lost", "full 3 kept", "patch 4 B", "deleted 2 "}, seen); diff != "" || !HasCode(err, "not_found") {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
}

// data §2
func TestAWatchComesBackWithTheIDOfTheLastEventThatCounted(t *testing.T) {
	stamped := func(event, stamp string) string { return strings.Replace(event, "\ndata:", "."+stamp+"\ndata:", 1) }
	reset := "event: full\nid: 4.new\ndata: {\"version\":4,\"reset\":true,\"node\":{\"path\":\"a\",\"name\":\"kept\",\"version\":4}}\n\n"
	s := &streams{scripts: []string{
		stamped(full(3, "A"), "one"),
		stamped(patch(4, 3, `{"name":"lost"}`), "two") + stamped(full(2, "late"), "old"), // which does not count
		reset,
		full(5, "without a stamp"),
		"event: full\ndata: {\"version\":6,\"node\":{\"path\":\"a\",\"name\":\"without an id\",\"version\":6}}\n\n",
		"event: deleted\nid: 7.0\ndata: {\"version\":7}\n\n",
		stamped(patch(9, 8, `{"name":"gap"}`), "nine"),
	}}
	seen, _, err := follow(t, s)
	if diff := cmp.Diff([]string{"full 3 A", "patch 4 lost", "full 4 kept", "full 5 without a stamp", "full 6 without an id", "deleted 7 "}, seen); diff != "" || !HasCode(err, "not_found") {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"", "3.one", "4.two", "4.new", "5", "6", "7.0", ""}, s.resumed); diff != "" {
		t.Errorf("resumed from (-want +got):\n%s", diff)
	}
}

// AC-R1
func TestAWatchEndsWithTheServersReason(t *testing.T) {
	s := &streams{scripts: []string{full(3, "A") + "event: end\ndata: {\"code\":\"not_found\",\"status\":404,\"retry\":\"never\",\"detail\":\"withdrawn\"}\n\n", full(4, "B")}}
	seen, waits, err := follow(t, s)
	var e *Error
	if !errors.As(err, &e) || e.Status != 404 || e.Detail != "withdrawn" || len(seen) != 1 || len(waits) != 0 {
		t.Fatalf("%v after %v and %v", err, seen, waits)
	}
}

func TestAServerThatGoesDownIsWaitedForAsLongAsItAsks(t *testing.T) {
	s := &streams{scripts: []string{full(3, "A") + "event: end\ndata: {\"code\":\"shutting_down\",\"retry\":\"after\",\"retryAfter\":0.002}\n\n", patch(4, 3, `{"name":"B"}`)}}
	seen, waits, err := follow(t, s)
	if !HasCode(err, "not_found") || len(seen) != 2 || waits[0] < 2*time.Millisecond {
		t.Fatalf("%v after %v and %v", err, seen, waits)
	}
}

func TestAFirstConnectionThatFailsIsNotRetried(t *testing.T) {
	s := &streams{scripts: []string{"503", full(3, "A")}}
	seen, waits, err := follow(t, s)
	if !HasCode(err, "starting") || len(seen) != 0 || len(waits) != 0 {
		t.Fatalf("%v after %v and %v", err, seen, waits)
	}
}

func TestACallerCanStopItsWatch(t *testing.T) {
	server := httptest.NewServer(&streams{scripts: []string{full(3, "A") + full(4, "B"), full(5, "C")}})
	defer server.Close()
	c, err := New(Options{Server: server.URL, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := c.Watch(t.Context(), "a", WatchOptions{}, func(Event) error { return enough }); !errors.Is(err, enough) {
		t.Fatal(err)
	}
}

// hanging is a stream that says one thing and then nothing.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: &hangingBody{ctx: r.Context(), text: strings.NewReader(full(3, "A"))}, Request: r}, nil
}

type hangingBody struct {
	ctx  context.Context
	text *strings.Reader
}

func (b *hangingBody) Read(p []byte) (int, error) {
	if b.text.Len() > 0 {
		return b.text.Read(p)
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (*hangingBody) Close() error { return nil }

// fault 25
func TestAStreamThatFallsSilentIsConnectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{Server: "http://h", HTTP: &http.Client{Transport: hanging{}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var lost time.Duration
		o := WatchOptions{Lost: func(err error, _ time.Duration) {
			lost = time.Since(began)
			if !strings.Contains(err.Error(), "silent") {
				t.Errorf("lost: %v", err)
			}
			cancel()
		}}
		if err := c.Watch(ctx, "a", o, func(Event) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if lost != silence {
			t.Fatalf("lost after %v, want %v", lost, silence)
		}
	})
}

// fault 23
func TestClientsOfAServerThatRestartsSpreadOut(t *testing.T) {
	const clients = 1000
	var perSecond [8]int
	c := &Client{}
	for range clients {
		perSecond[int(c.delay(0, 0)/time.Second)]++
	}
	spread := 0
	for _, n := range perSecond {
		if n > 0 {
			spread++
		}
		if n > clients*3/10 {
			t.Errorf("%d of %d come back in one second", n, clients)
		}
	}
	if spread < 5 {
		t.Errorf("all come back within %d s", spread)
	}
	if d := c.delay(60, 10*time.Second); d < 10*time.Second || d > 70*time.Second {
		t.Errorf("a late attempt waits %v", d)
	}
}

// The window is spent in virtual time.
func TestAServerThatDoesNotComeBackIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, err := New(Options{Server: "http://gone", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if asked++; asked == 1 {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(full(1, "a"))), Request: r}, nil
			}
			return nil, errors.New("connection refused")
		})}})
		if err != nil {
			t.Fatal(err)
		}
		begin, lost := time.Now(), 0
		err = c.Watch(t.Context(), "a", WatchOptions{GiveUp: 5 * time.Minute, Lost: func(error, time.Duration) { lost++ }}, func(Event) error { return nil })
		var e *Error
		if !errors.As(err, &e) || e.Retry != After || time.Since(begin) != 5*time.Minute || lost < 3 {
			t.Fatalf("after %v and %d attempts: %v", time.Since(begin), lost, err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
