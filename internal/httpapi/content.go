package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/hubmesh/hubmesh/internal/budget"
)

const contentPrefix = "/api/content/"

// bufferBelow is the size from which a file is streamed; below it is read whole and gets a strong tag
// (edge.md §1.3).
const bufferBelow = 10_000_000

// isContent tells whether a request is one of the content route, whose answers reveal less.
func isContent(r *http.Request) bool {
	return strings.HasPrefix(r.URL.EscapedPath(), contentPrefix)
}

// contentProblem keeps what the content route may say: decided is 404, undecided is 503 (edge.md §1.2).
func contentProblem(p *Problem) *Problem {
	switch p.row().status {
	case http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusRequestedRangeNotSatisfiable, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable:
		return p
	case http.StatusInsufficientStorage:
		return problem("unavailable", p.Detail)
	}
	return absent("")
}

func (s *Server) getContent(w http.ResponseWriter, r *http.Request) error {
	parts, err := segments(r, contentPrefix)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return absent("")
	}
	download, err := boolean(r.URL.Query(), "download")
	if err != nil {
		return err
	}
	file, err := s.Content.Open(r.Context(), parts)
	if err != nil {
		return err
	}
	defer file.Body.Close() //nolint:errcheck // read only
	media := mediaType(file.Name)
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Security-Policy", contentPolicy(media))
	disposition := "inline"
	if download {
		disposition = mime.FormatMediaType("attachment", map[string]string{"filename": file.Name})
		if disposition == "" { // a name that can not be said in a header
			disposition = "attachment"
		}
	}
	h.Set("Content-Disposition", disposition)
	body := io.ReadSeeker(file.Body)
	switch {
	case file.ETag != "":
		h.Set("ETag", file.ETag)
	case file.Size < bufferBelow:
		text := bytes.NewBuffer(make([]byte, 0, file.Size+bytes.MinRead))
		if _, err := text.ReadFrom(io.LimitReader(file.Body, bufferBelow)); err != nil {
			return fmt.Errorf("reading %s: %w", file.Name, err)
		}
		sum := sha256.Sum256(text.Bytes())
		h.Set("ETag", `"`+base64.StdEncoding.EncodeToString(sum[:])+`"`)
		body = bytes.NewReader(text.Bytes())
	}
	out := &contentWriter{ResponseWriter: w, rc: http.NewResponseController(w), wait: s.bounds.Own(budget.ContentIO), size: file.Size}
	http.ServeContent(out, withoutNothing(r), file.Name, file.Modified, body)
	out.deadline(time.Time{})
	return nil
}

// emptySuffix is a range of the last 0 bytes.
var emptySuffix = regexp.MustCompile(`([=,])([ \t]*)-[ \t]*0+[ \t]*(,|$)`)

// withoutNothing returns the request with its ranges of the last 0 bytes put beyond the end of every file:
// they can not be satisfied (RFC 9110 §14.1.2), while the standard library answers them with a part
// that ends before it begins.
func withoutNothing(r *http.Request) *http.Request {
	ranges := r.Header.Get("Range")
	if unit, _, ok := strings.Cut(ranges, "="); ok && !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		q := *r // a unit that is not known is ignored (RFC 9110 §14.2)
		q.Header = r.Header.Clone()
		q.Header.Del("Range")
		return &q
	}
	beyond := ranges
	for was := ""; was != beyond; { // neighbours share their comma
		was, beyond = beyond, emptySuffix.ReplaceAllString(beyond, "${1}${2}9223372036854775807-${3}")
	}
	if beyond == ranges {
		return r
	}
	q := *r
	q.Header = r.Header.Clone()
	q.Header.Set("Range", beyond)
	return &q
}

// contentPolicy keeps uploaded markup from acting as a page of this server.
func contentPolicy(media string) string {
	kind, _, _ := strings.Cut(media, ";")
	if kind == "text/html" || kind == "image/svg+xml" || strings.HasSuffix(kind, "xml") {
		return "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'self'"
	}
	return "frame-ancestors 'self'"
}

// contentWriter gives each chunk its own deadline and turns the standard library's answer to a bad range
// into a problem.
type contentWriter struct {
	http.ResponseWriter
	rc       *http.ResponseController
	wait     time.Duration
	size     int64 // of the file
	replaced bool
}

func (w *contentWriter) WriteHeader(status int) {
	if status == http.StatusPreconditionFailed {
		w.replaced = true
		problem("stale", "the file is not the one that the condition names; read it again").Write(w.ResponseWriter)
		return
	}
	if status != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.replaced = true
	size := w.Header().Get("Content-Range")
	if size == "" { // of a header that is no list of ranges
		size = fmt.Sprintf("bytes */%d", w.size)
	}
	problem("range_not_satisfiable", "the range is outside of the file").writeWith(w.ResponseWriter, "Content-Range", size)
}

func (w *contentWriter) Write(b []byte) (int, error) {
	if w.replaced {
		return len(b), nil
	}
	w.deadline(time.Now().Add(w.wait))
	return w.ResponseWriter.Write(b)
}

// deadline bounds the next write; a writer without deadlines writes without.
func (w *contentWriter) deadline(at time.Time) {
	_ = w.rc.SetWriteDeadline(at) //nolint:errcheck // a closed connection fails at the write
}
