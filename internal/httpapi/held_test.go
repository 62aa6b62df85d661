package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// bad input: a body that is announced and does not come
func TestABodyCostsWhatHasComeOfItAndNotWhatWasAnnounced(t *testing.T) {
	s, _ := serve(t, newMesh())
	cut := errors.New("cut")
	reads := func(announced int64, body io.Reader) (text []byte, allocated uint64) {
		r := httptest.NewRequest("POST", "/api/nodes/a", body)
		r.ContentLength = announced
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text, err := s.arriving(httptest.NewRecorder(), r, r.Body)
		runtime.ReadMemStats(&after)
		if err != nil && !errors.Is(err, cut) {
			t.Fatal(err)
		}
		return text, after.TotalAlloc - before.TotalAlloc
	}
	if _, bytes := reads(8<<20, io.MultiReader(strings.NewReader("{"), iotest.ErrReader(cut))); bytes > 200<<10 {
		t.Errorf("one byte of an announced body of 8 MiB takes %d bytes", bytes)
	}
	whole := strings.Repeat("x", 1<<20)
	for _, announced := range []int64{-1, 0, 1, 1 << 20} { // also those that lie
		if text, bytes := reads(announced, iotest.HalfReader(strings.NewReader(whole))); string(text) != whole || bytes > 8<<20 {
			t.Errorf("announced as %d: %d bytes came, %d were allocated", announced, len(text), bytes)
		}
	}
}

// ask sends a request for a subject ("" for a visitor) without waiting for the answer.
func ask(conn net.Conn, subject, request, body string) {
	who := ""
	if subject != "" {
		who = "Authorization: Bearer " + subject + "\r\n"
	}
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", request, who, len(body), body)
}

// small bounds what is held to 800 KB, 200 KB of one subject, and 100 KB of all visitors.
func small(c *Config) { c.Limits.HeldBytes = 800_000 }

// bad input: answers that are asked for and not read
func TestAnswersThatAreNotReadAreHeldUpToABoundAndTheNextIsRefused(t *testing.T) {
	big := doc("acme", 1)
	big.Content = node.RawContent(`{"v":"` + strings.Repeat("x", 150_000) + `"}`)
	const query = "GET /api/query?q=path:acme"
	for name, last := range map[string]struct {
		request, want string
	}{
		"a query":             {query, `"code":"overloaded"`},
		"a node":              {"GET /api/nodes/acme", `"code":"overloaded"`},
		"a version of a node": {"GET /api/versions/acme?at=1", `"code":"overloaded"`},
		"a live query, which ends while its connection goes on": {"GET /api/live?query=path:acme&node=none", "event: sub-end\ndata: {\"code\":\"overloaded\""},
	} {
		t.Run(name, func(t *testing.T) {
			slowly(t, newMesh(big), func(t *testing.T, dial func() net.Conn) {
				first := dial()
				ask(first, "bob", query, "")
				synctest.Wait() // the answer waits to be read
				second := dial()
				ask(second, "bob", last.request, "")
				seen := make([]byte, 4000)
				n := 0
				for !strings.Contains(string(seen[:n]), last.want) {
					more, err := second.Read(seen[n:])
					if n += more; err != nil || n == len(seen) {
						t.Fatalf("no %q in %s", last.want, seen[:n])
					}
				}
				second.Close()
				other := dial()
				ask(other, "carl", query, "")
				if status, body, _, _ := answered(t, other, time.Now()); status != 200 || !strings.Contains(body, `"truncated":false}`) {
					t.Errorf("somebody else: %d, %d bytes", status, len(body))
				}
				first.Close()
				synctest.Wait()
				again := dial()
				ask(again, "bob", query, "")
				if status, body, _, _ := answered(t, again, time.Now()); status != 200 || len(body) < 150_000 {
					t.Errorf("once the first is gone: %d, %d bytes", status, len(body))
				}
			}, small)
		})
	}
}

// bad input: answers to writes that are not read
func TestTheAnswerToAWriteWaitsForRoomAsItsChangeIsMade(t *testing.T) {
	big := doc("acme", 1)
	big.Content = node.RawContent(`{"v":"` + strings.Repeat("x", 150_000) + `"}`)
	for name, ends := range map[string]bool{"that comes": true, "that does not come": false} {
		t.Run(name, func(t *testing.T) {
			slowly(t, newMesh(big), func(t *testing.T, dial func() net.Conn) {
				first, second := dial(), dial()
				ask(first, "bob", "GET /api/query?q=path:acme", "")
				synctest.Wait()
				ask(second, "bob", "PATCH /api/nodes/acme", `{"name":"x"}`)
				synctest.Wait()
				if ends {
					first.Close()
					if status, body, _, _ := answered(t, second, time.Now()); status != 200 || len(body) < 150_000 {
						t.Errorf("%d, %d bytes", status, len(body))
					}
					return
				}
				if n, err := second.Read(make([]byte, 100)); n > 0 || err == nil {
					t.Errorf("%d bytes came", n)
				}
				first.Close()
			}, small)
		})
	}
}

// bad input: a body that is more than its sender's share
func TestABodyIsTakenHoweverLargeItIsWhereItsSenderHasNoOther(t *testing.T) {
	s, _ := serve(t, newMesh(doc("acme", 1)), small)
	r := httptest.NewRequest("POST", "/api/nodes/acme/x", strings.NewReader(strings.Repeat(" ", 600_000)+"{}"))
	r.Header.Set("Authorization", asBob)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != 201 || s.held.all != 0 {
		t.Errorf("%d %s; %d bytes are held after it", w.Code, w.Body, s.held.all)
	}
}

// bad input: texts of a caller that an answer repeats
func TestAProblemSaysNoMoreThanALineOfWhatACallerHasSent(t *testing.T) {
	s, _ := serve(t, newMesh(doc("acme", 1)))
	long := strings.Repeat("<", 700_000)
	for target, body := range map[string]string{
		"/api/nodes":        `{"` + long + `":1}`,
		"/api/nodes/acme/x": `{"` + long + `":1}`,
		"/api/nodes?":       `{"nodes":[{"path":"acme/x","` + long + `":1},{"path":"` + long + `"}]}`,
	} {
		r := httptest.NewRequest("POST", target, strings.NewReader(body))
		r.Header.Set("Authorization", asBob)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if text := w.Body.String(); len(text) > 8_000 || !strings.Contains(text, "<<<<") || strings.Contains(text, "u003c") {
			t.Errorf("%s: %d, %d bytes: %.200s", target, w.Code, len(text), text)
		}
	}
}

// bad input: what somebody sends who can not be allowed anything
func TestOfAVisitorToWhomNothingIsGrantedNoBodyIsRead(t *testing.T) {
	m := newMesh(doc("acme", 1))
	for _, m.nothing = range []bool{true, false} {
		s, _ := serve(t, m)
		body := strings.NewReader(`{"nodes":[]}`)
		r := httptest.NewRequest("POST", "/api/nodes", body)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := body.Len() > 0; got != m.nothing || (w.Code == 401) != m.nothing {
			t.Errorf("nothing granted %v: %d %s; %d bytes were left", m.nothing, w.Code, w.Body, body.Len())
		}
	}
}

// bad input: bodies of visitors, who may be one sender
func TestTheBodiesOfAllVisitorsTogetherAreBounded(t *testing.T) {
	m := newMesh(doc("acme", 1))
	slowly(t, m, func(t *testing.T, dial func() net.Conn) {
		part := strings.Repeat(" ", 90_000)
		first := dial()
		fmt.Fprintf(first, "POST /api/nodes/acme/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n%s", part)
		synctest.Wait()
		second := dial()
		go ask(second, "", "POST /api/nodes/acme/b", part) // it is answered before it is read
		if status, body, _, _ := answered(t, second, time.Now()); status != 503 || !strings.Contains(body, message.SubjectAnonymous) {
			t.Errorf("the second: %d %s", status, body)
		}
		third := dial()
		go ask(third, "bob", "POST /api/nodes/acme/c", part+"{}")
		if status, body, _, _ := answered(t, third, time.Now()); status != 201 {
			t.Errorf("bob's: %d %s", status, body)
		}
		first.Close()
		synctest.Wait()
		fourth := dial()
		go ask(fourth, "", "POST /api/nodes/acme/d", part+"{}")
		if status, body, _, _ := answered(t, fourth, time.Now()); status != 201 {
			t.Errorf("once the first is gone: %d %s", status, body)
		}
	}, small)
}

// bad input: a list of very many entries of two bytes
func TestAListOfTooManyNodesIsRefusedBeforeThereIsRoomForThem(t *testing.T) {
	s, _ := serve(t, newMesh(doc("acme", 1)))
	for name, c := range map[string]struct {
		entry  string
		n      int
		status int
		most   uint64 // bytes allocated
	}{
		"numbers":                        {"1", 2_000_000, 400, 64 << 20},
		"empty objects":                  {"{}", 2_000_000, 400, 64 << 20},
		"the control: as many as may be": {"{}", mostNodes, 200, 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"nodes":[` + strings.TrimSuffix(strings.Repeat(c.entry+",", c.n), ",") + `]}`
			r := httptest.NewRequest("POST", "/api/nodes", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			if bytes := after.TotalAlloc - before.TotalAlloc; w.Code != c.status || bytes > c.most {
				t.Errorf("%d, %d MiB allocated: %.200s", w.Code, bytes>>20, w.Body)
			}
		})
	}
}

func TestWhatIsHeldIsGivenBackToTheLastByte(t *testing.T) {
	s, _ := serve(t, newMesh(doc("acme", 1)), small)
	for _, c := range []struct {
		method, target, body string
		status               int
	}{
		{"GET", "/api/query?q=path:acme", "", 200}, {"GET", "/api/nodes/acme", "", 200}, {"POST", "/api/nodes/acme/x", "{}", 201}, {"POST", "/api/nodes/acme/y", "{", 400},
		{"POST", "/api/nodes/acme/y", strings.Repeat(" ", 150_000) + "{}", 201}, {"GET", "/api/live?query=path:acme", "", 200},
	} {
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, c.method, c.target, strings.NewReader(c.body))
		r.Header.Set("Authorization", asBob)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if strings.HasPrefix(c.target, "/api/live") {
			leave() // else it goes on
		}
		s.ServeHTTP(w, r)
		leave()
		if w.Code != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.target, w.Code, w.Body)
		}
		if s.held.all != 0 || len(s.held.of) != 0 {
			t.Errorf("%s %s: %d bytes of %v are held", c.method, c.target, s.held.all, s.held.of)
		}
	}
}

// bad input: several subjects that take all they can and give nothing back
func TestWhoTakesAllHeCanLeavesRoomForWhoeverComesNext(t *testing.T) {
	h := holdings{most: 1_000_000, each: 250_000, visitors: 125_000}
	for i := range 6 {
		subject := fmt.Sprint("greedy", i)
		for h.take(subject, 1000, 0) == nil {
		}
		if free := h.most - h.all; free < h.of[subject]-1000 {
			t.Errorf("%s holds %d, and %d are free", subject, h.of[subject], free)
		}
		for range 5 {
			if err := h.take(fmt.Sprint("modest", i), 1000, 0); err != nil {
				t.Errorf("after %d: %v", i+1, err)
			}
		}
	}
	var p *Problem
	if err := h.take("greedy0", 1000, 0); !errors.As(err, &p) || p.Code != "overloaded" {
		t.Errorf("one more: %v", err)
	}
}

// bad input: bodies cost more while they are decoded than they are long
func TestABodyCountsForTheCopiesThatDecodingMakes(t *testing.T) {
	for size, want := range map[int]int{70_000: 503, 60_000: 201} { // visitors have 100 KB; small bodies are the control
		s, _ := serve(t, newMesh(doc("acme", 1)), small)
		if err := s.held.take(message.SubjectAnonymous, 1000, 0); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/api/nodes/acme/x", strings.NewReader(strings.Repeat(" ", size)+"{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != want || s.held.all != 1000 {
			t.Errorf("%d bytes: %d %s; %d bytes are held after it", size, w.Code, w.Body, s.held.all)
		}
	}
}

// bad input: clients whose bodies fill their share, and who read
func TestAnAnswerTakesThePlaceOfItsBody(t *testing.T) {
	s, _ := serve(t, newMesh(doc("acme", 1)), small)
	if err := s.held.take("bob", 100_000, 0); err != nil { // of 200 KB
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/api/nodes/acme/x", strings.NewReader(`{"content":{"v":"`+strings.Repeat("x", 60_000)+`"}}`))
	r.Header.Set("Authorization", asBob)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	began := time.Now()
	if s.ServeHTTP(w, r); w.Code != 201 || time.Since(began) > 5*time.Second || s.held.all != 100_000 {
		t.Errorf("%d after %v; %d bytes are held after it", w.Code, time.Since(began), s.held.all)
	}
}
