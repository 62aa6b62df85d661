package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store"
)

func tagOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return `"` + base64.StdEncoding.EncodeToString(sum[:]) + `"`
}

// edge §1.3, edge invariants 33, 34
func TestContentHasItsHeaders(t *testing.T) {
	m := newMesh()
	m.files["acme/content/a.txt"] = "hello world"
	m.files["acme/content/Film.MP4"] = "0123456789"
	m.files["acme/content/page.html"] = "<script>alert(1)</script>"
	m.files["acme/content/icon.svg"] = "<svg/>"
	m.files["acme/content/strange"] = "?"
	m.files["acme/content/grün \"x\".pdf"] = "%PDF"
	_, base := serve(t, m)
	tag := tagOf("hello world")
	runAll(t, base, []scenario{
		{"text", "GET", "/api/content/acme/content/a.txt", nil, "", 200, []string{"hello world", "Cache-Control: private, no-store", "Etag: " + tag, "Content-Disposition: inline",
			"X-Content-Type-Options: nosniff", "Content-Type: text/plain; charset=utf-8", "Accept-Ranges: bytes"}},
		{"HEAD", "HEAD", "/api/content/acme/content/a.txt", nil, "", 200, []string{"Content-Length: 11", "!hello"}},
		{"the caller's own bytes", "GET", "/api/content/acme/content/a.txt", []string{"If-None-Match", tag}, "", 304, []string{"Cache-Control: private, no-store"}},
		{"a range", "GET", "/api/content/acme/content/Film.MP4", []string{"Range", "bytes=2-4"}, "", 206, []string{"234", "!0", "Content-Range: bytes 2-4/10", "Content-Type: video/mp4", "Content-Disposition: inline"}},
		{"a range outside", "GET", "/api/content/acme/content/Film.MP4", []string{"Range", "bytes=20-"}, "", 416, []string{`"code":"range_not_satisfiable"`, "Content-Range: bytes */10", "Content-Type: application/problem+json"}},
		// RFC 9110 §14.2
		{"a range of an unknown unit is ignored", "GET", "/api/content/acme/content/Film.MP4", []string{"Range", "lines=1"}, "", 200, []string{"0123456789"}},
		{"other bytes than the caller's", "GET", "/api/content/acme/content/a.txt", []string{"If-Match", `"other"`}, "", 412, []string{`"code":"stale"`, "Content-Type: application/problem+json"}},
		{"a download", "GET", "/api/content/acme/content/a.txt?download", nil, "", 200, []string{"Content-Disposition: attachment; filename=a.txt"}},
		{"a download of another name", "GET", "/api/content/acme/content/gr%C3%BCn%20%22x%22.pdf?download", nil, "", 200, []string{"Content-Disposition: attachment; filename*=utf-8''gr%C3%BCn%20%22x%22.pdf", "Content-Type: application/pdf"}},
		{"markup can not act as a page", "GET", "/api/content/acme/content/page.html", nil, "", 200, []string{"Content-Security-Policy: sandbox; default-src 'none'", "Content-Type: text/html"}},
		{"nor can a picture with scripts", "GET", "/api/content/acme/content/icon.svg", nil, "", 200, []string{"Content-Security-Policy: sandbox"}},
		{"an unknown extension", "GET", "/api/content/acme/content/strange", nil, "", 200, []string{"Content-Type: application/octet-stream"}},
	})
}

// edge §1.2, CR-2
func TestRefusalAndAbsenceOfContentAnswerAlike(t *testing.T) {
	bodies := map[string]string{}
	for name, err := range map[string]error{
		"absent": nil, "denied": &access.DeniedError{Subject: "bob", Path: "acme", Need: access.Read}, "forbidden": &message.Failure{Type: message.Forbidden, Message: "secret"},
		"no node": &store.NotFoundError{Path: "acme"}, "unpublished": problem("not_found", "the collection is not published"),
	} {
		m := newMesh()
		m.fail = err
		_, base := serve(t, m)
		got := send(t, base, "GET", "/api/content/acme/content/none.txt", nil, nil)
		if got.status != 404 {
			t.Errorf("%s: status %d", name, got.status)
		}
		bodies[got.body] = name
	}
	_, base := serve(t, newMesh())
	bodies[send(t, base, "GET", "/api/content/acme/../x", nil, nil).body] = "bad path"
	bodies[send(t, base, "GET", "/api/content/acme/%00", nil, nil).body] = "bad segment"
	bodies[send(t, base, "GET", "/api/content/", nil, nil).body] = "no path"
	if len(bodies) != 1 {
		t.Fatalf("the answers differ: %v", bodies)
	}
}

// edge §1.2
func TestUndecidedContentIsNotDecided(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"a lapse":            {&budget.Lapse{Bound: budget.Read, By: budget.Read, Clause: "STILL STARTING"}, 503, "lapsed"},
		"undetermined":       {&access.UndeterminedError{Path: "acme"}, 503, "undetermined"},
		"shutting down":      {&message.Failure{Type: message.ShuttingDown}, 503, "shutting_down"},
		"a full disk":        {problem("storage_full", "x"), 503, "unavailable"},
		"an unknown fault":   {errors.New("secret"), 500, "internal"},
		"a bad request":      {problem("bad_request", "x"), 404, "not_found"},
		"a failed handshake": {problem("unauthenticated", "x"), 404, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh()
			m.fail = c.err
			_, base := serve(t, m)
			want := []string{`"code":"` + c.code + `"`, "!secret"}
			if c.status == 503 {
				want = append(want, "Retry-After: 5")
			}
			scenario{method: "GET", target: "/api/content/acme/content/a", status: c.status, want: want}.run(t, base)
		})
	}
}

// CR-2, edge invariant 27
func TestATokenThatIsNotKnownIsAnonymousToContentAndRefusedElsewhere(t *testing.T) {
	m := newMesh(doc("acme", 1))
	m.files["acme/content/a.txt"] = "x"
	_, base := serve(t, m)
	wrong, away := []string{"Authorization", "Bearer wrong"}, []string{"Authorization", "Bearer away"}
	runAll(t, base, []scenario{
		{"content takes it for a visitor", "GET", "/api/content/acme/content/a.txt", wrong, "", 200, nil},
		{"a node refuses it", "GET", "/api/nodes/acme", wrong, "", 401, []string{`"code":"unauthenticated"`, "Www-Authenticate: Bearer"}},
		{"a token that could not be checked is kept", "GET", "/api/content/acme/content/a.txt", away, "", 503, []string{"Retry-After: 5", "keep it and try again"}},
		{"everywhere", "GET", "/api/nodes/acme", away, "", 503, []string{"Retry-After: 5"}},
	})
	if len(m.calls) != 1 || m.calls[0] != "Anonymous open acme|content|a.txt" {
		t.Fatalf("calls: %q", m.calls)
	}
}

// large is a file that is never held whole.
type large struct {
	io.ReadSeeker
	read int64
}

func (l *large) Read(b []byte) (int, error) {
	n, err := l.ReadSeeker.Read(b)
	l.read += int64(n)
	return n, err
}
func (*large) Close() error { return nil }

type largeContent struct{ file *large }

func (c largeContent) Open(context.Context, []string) (*File, error) {
	return &File{Name: "a.bin", Size: bufferBelow, Modified: time.Unix(1700000000, 0), Body: c.file}, nil
}

// edge §1.3
func TestALargeFileIsStreamedAndItsRangesAreRead(t *testing.T) {
	file := &large{ReadSeeker: strings.NewReader(strings.Repeat("x", bufferBelow))}
	_, base := serve(t, newMesh(), func(c *Config) { c.Content = largeContent{file} })
	scenario{method: "GET", target: "/api/content/a/b/c", headers: []string{"Range", "bytes=5-14"}, status: 206,
		want: []string{"xxxxxxxxxx", "Cache-Control: private, no-store", "Content-Range: bytes 5-14/10000000", "Last-Modified: Tue, 14 Nov 2023"}}.run(t, base)
	if file.read > 1<<20 {
		t.Fatalf("%d bytes were read for ten", file.read)
	}
	got := send(t, base, "GET", "/api/content/a/b/c", nil, nil)
	if len(got.body) != bufferBelow || got.header.Get("ETag") != "" {
		t.Fatalf("%d bytes, tag %q", len(got.body), got.header.Get("ETag"))
	}
}

func TestFilesAreListedWrittenAndRemoved(t *testing.T) {
	m := newMesh(doc("acme", 1))
	_, base := serve(t, m, func(c *Config) { c.Limits.UploadBytes = 100 })
	runAll(t, base, []scenario{
		{"a new file is 201", "PUT", "/api/files/acme/content/a%20b.txt", nil, "hello", 201, []string{`"size":5`, "Location: /api/content/acme/content/a b.txt"}},
		{"another time 200", "PUT", "/api/files/acme/content/a%20b.txt", []string{"Content-Type", "text/plain"}, "hello", 200, nil},
		// edge invariant 36
		{"it is there at once", "GET", "/api/content/acme/content/a%20b.txt", nil, "", 200, []string{"hello"}},
		{"an upload above the limit is refused", "PUT", "/api/files/acme/content/b", nil, strings.Repeat("x", 101), 413, []string{"more than 100 bytes"}},
		{"a file needs a collection", "PUT", "/api/files/acme/content", nil, "x", 404, nil},
		{"dots are refused", "PUT", "/api/files/acme/content/%2e%2e/x", nil, "x", 400, nil},
		{"a listing", "GET", "/api/files/acme?dir=x/y", nil, "", 200, []string{`"collection":"content"`, `"dir":"x/y"`, `"name":"a.txt"`}},
		{"a listing of what is above", "GET", "/api/files/acme?dir=x/../..", nil, "", 400, []string{`"field":"dir"`}},
		{"a removal", "DELETE", "/api/files/acme/content/a", nil, "", 204, nil},
	})
	t.Run("an undeclared upload is cut at the limit and not kept", func(t *testing.T) {
		got := send(t, base, "PUT", "/api/files/acme/content/big", nil, io.MultiReader(strings.NewReader(strings.Repeat("x", 101))))
		if got.status != 413 || m.files["acme/content/big"] != "" {
			t.Fatalf("status %d, kept %d bytes", got.status, len(m.files["acme/content/big"]))
		}
	})
}

// edge §1.2
// Whatever node was found nearest, a change of a file that is refused or not there does not name it.
func TestARefusedChangeOfAFileNamesNoNode(t *testing.T) {
	m := newMesh()
	m.fail = &store.NotFoundError{Path: "acme/nearest"}
	_, base := serve(t, m)
	runAll(t, base, []scenario{
		{"upload", "PUT", "/api/files/acme/nearest/content/a.txt", nil, "text", 404, []string{"not_found", "!nearest"}},
		{"delete", "DELETE", "/api/files/acme/nearest/content/a.txt", nil, "", 404, []string{"not_found", "!nearest"}},
	})
}
