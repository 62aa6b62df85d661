package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hubmesh/hubmesh/internal/node"
)

// pipes is a listener of connections in memory, whose time is virtual.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// slowly runs f with a way to open connections to a server over m, in virtual time.
func slowly(t *testing.T, m *mesh, f func(t *testing.T, dial func() net.Conn), change ...func(*Config)) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Services: m.services(), Log: slog.New(slog.DiscardHandler)}
		for _, f := range change {
			f(&c)
		}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		web := &http.Server{Handler: s}
		var work sync.WaitGroup
		work.Go(func() { _ = web.Serve(l) })
		var open []net.Conn
		f(t, func() net.Conn {
			here, there := net.Pipe()
			l.conns <- there
			open = append(open, here)
			return here
		})
		for _, c := range open {
			c.Close()
		}
		s.Close()
		web.Close()
		work.Wait()
	})
}

// trickle sends size bytes, step at a time, with a pause after each, until it is cut off.
func trickle(ctx context.Context, conn net.Conn, size, step int, pause time.Duration) {
	for ; size > 0; size -= step {
		if _, err := conn.Write([]byte(strings.Repeat(" ", min(step, size)))); err != nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// answered reads the answer, how long it took, and whether the connection ended after it.
func answered(t *testing.T, conn net.Conn, began time.Time) (status int, body string, took time.Duration, closed bool) {
	t.Helper()
	in := bufio.NewReader(conn)
	got, err := http.ReadResponse(in, nil)
	if err != nil {
		return 0, err.Error(), time.Since(began), true
	}
	took = time.Since(began)
	text, _ := io.ReadAll(got.Body)
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	_, err = in.ReadByte()
	return got.StatusCode, string(text), took, err == io.EOF
}

const header = "%s HTTP/1.1\r\nHost: x\r\nAuthorization: " + asBob + "\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

// bad input: a body that comes byte by byte
func TestABodyThatComesTooSlowlyEndsWithItsBound(t *testing.T) {
	const kib = 1 << 10
	tests := []struct {
		name, request string
		size, step    int
		pause         time.Duration
		status        int
		took          time.Duration
		closed        bool
		want          string
	}{
		{"JSON, a byte in five seconds", "POST /api/nodes/acme/slow", 1000, 1, 5 * time.Second, 408, 30 * time.Second, true, `"code":"body_timeout"`},
		{"JSON that stops", "PATCH /api/nodes/acme", 1000, 10, time.Hour, 408, 30 * time.Second, true, "within 30s"},
		{"the control: JSON that is done in time", "POST /api/nodes/acme/slow", 1000, 50, time.Second, 400, 19 * time.Second, false, `"code":"invalid_json"`},
		{"an upload, a byte in five seconds", "PUT /api/files/acme/content/a.bin", 1000, 1, 5 * time.Second, 408, 30 * time.Second, true, "less than 65536 bytes"},
		{"an upload that stops in its second chunk", "PUT /api/files/acme/content/a.bin", 1000 * kib, 70 * kib, time.Hour, 408, 30 * time.Second, true, `"retry":"after"`},
		{"the control: an upload that goes on for long", "PUT /api/files/acme/content/a.bin", 2000 * kib, 64 * kib, 20 * time.Second, 201, 620 * time.Second, false, `"size":2048000`},
		{"an upload that is refused before it has come", "PUT /api/files/none/content/a.bin", 1000, 1, time.Hour, 404, 30 * time.Second, true, `"code":"not_found"`},
		{"a body that no route wants", "GET /api/nodes/acme", 1000, 1, 5 * time.Second, 408, 30 * time.Second, true, `"code":"body_timeout"`},
		{"a body of content", "GET /api/content/acme/content/a.txt", 1000, 1, 5 * time.Second, 408, 30 * time.Second, true, `"code":"body_timeout"`},
		{"a body of no route", "POST /api/nothing", 1000, 1, 5 * time.Second, 404, 30 * time.Second, true, `"code":"not_found"`},
		{"a body that is refused by its type", "POST /api/nodes/nowhere%%00", 1000, 1, 5 * time.Second, 400, 30 * time.Second, true, `"code":"invalid_path"`},
		{"the control: a small body that no route wants", "GET /api/nodes/acme", 10, 10, 0, 200, 0, false, `"path":"acme"`},
		{"a large body that no route wants", "GET /api/nodes/acme", 100 * kib, 100 * kib, 0, 413, 0, true, `"code":"too_large"`},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			m := newMesh(doc("acme", 1))
			m.files["acme/content/a.txt"] = "x"
			slowly(t, m, func(t *testing.T, dial func() net.Conn) {
				conn, began := dial(), time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				var sending sync.WaitGroup
				defer sending.Wait()
				defer conn.Close()
				defer cancel()
				sending.Go(func() {
					fmt.Fprintf(conn, strings.ReplaceAll(header, "%s", c.request), c.size)
					trickle(ctx, conn, c.size, c.step, c.pause)
				})
				status, body, took, closed := answered(t, conn, began)
				if status != c.status || took != c.took || closed != c.closed || !strings.Contains(body, c.want) {
					t.Errorf("%d after %v, closed %v: %s", status, took, closed, body)
				}
			})
		})
	}
}

// The bound on a body is gone once it was read: what is done with it takes its own time.
func TestWhatIsDoneWithABodyIsNotCutByItsBound(t *testing.T) {
	m := newMesh(doc("acme", 1))
	var served error
	slowly(t, m, func(t *testing.T, dial func() net.Conn) {
		m.create = func(ctx context.Context) {
			select {
			case <-ctx.Done():
				served = context.Cause(ctx)
			case <-time.After(time.Minute - time.Second):
			}
		}
		conn, began := dial(), time.Now()
		go fmt.Fprintf(conn, strings.ReplaceAll(header, "%s", "POST /api/nodes/acme/x")+"{}", 2)
		if status, body, took, _ := answered(t, conn, began); status != 201 || took != time.Minute-time.Second || served != nil {
			t.Errorf("%d after %v: %s %v", status, took, body, served)
		}
	})
}

// bad input: a client that takes its answer byte by byte, or not at all
func TestAClientThatDoesNotTakeItsAnswerIsGivenUp(t *testing.T) {
	big := doc("acme", 1)
	big.Content = node.RawContent(`{"markdown":"` + strings.Repeat("x", 1<<20) + `"}`)
	for name, pause := range map[string]time.Duration{"not at all": time.Hour, "a byte a second": time.Second, "the control: slowly": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			slowly(t, newMesh(big), func(t *testing.T, dial func() net.Conn) {
				conn, began := dial(), time.Now()
				fmt.Fprintf(conn, "GET /api/nodes/acme HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: %s\r\n\r\n", asBob)
				<-time.After(pause)
				read := make([]byte, 1)
				if pause == time.Millisecond {
					read = make([]byte, 512)
				}
				got := 0
				for {
					n, err := conn.Read(read)
					got += n
					if err != nil {
						if err != io.EOF && !errors.Is(err, io.ErrClosedPipe) {
							t.Error(err)
						}
						break
					}
					<-time.After(pause)
				}
				whole, took := got > 1<<20, time.Since(began)
				if whole != (pause == time.Millisecond) || !whole && took > 2*time.Hour {
					t.Errorf("%d bytes in %v", got, took)
				}
			})
		})
	}
}
