package httpapi

import (
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
)

// Problem is one error as callers see it (RFC 9457).
type Problem struct {
	Code    string
	Detail  string
	Retry   time.Duration  // for codes with retry "after"; 0 is the default
	Members map[string]any // further members
}

// problemType is what the type of a problem begins with; the code is the anchor. The page is open, as whoever
// may read nothing gets problems too.
const problemType = errorsPath + "#"

// retryDefault is Retry-After where an error does not say.
const retryDefault = 5 * time.Second

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// problem makes a Problem; the code must stand in the table.
func problem(code, detail string) *Problem { return &Problem{Code: code, Detail: detail} }

// with returns the problem with one more member.
func (p *Problem) with(name string, value any) *Problem {
	q := *p
	q.Members = maps.Clone(p.Members)
	if q.Members == nil {
		q.Members = map[string]any{}
	}
	q.Members[name] = value
	return &q
}

func (p *Problem) row() *code {
	if row, ok := codeByName[p.Code]; ok {
		return row
	}
	return codeByName["internal"]
}

// retrySeconds is the value of Retry-After; 0 for none. It is never below a second.
func (p *Problem) retrySeconds() int {
	if p.row().retry != retryAfter {
		return 0
	}
	wait := p.Retry
	if wait <= 0 {
		wait = retryDefault
	}
	return int((wait + time.Second - 1) / time.Second)
}

// mostSaid bounds a text of a problem, in bytes: it may quote what a caller has sent.
const mostSaid = 1000

// short cuts a text that is longer than a problem says.
func short(text string) string { return message.Shorten(text, mostSaid) }

// MarshalJSON writes the fixed members over the further ones. Texts are cut at [mostSaid].
func (p *Problem) MarshalJSON() ([]byte, error) {
	row := p.row()
	all := make(map[string]any, len(p.Members)+6)
	for name, value := range p.Members {
		switch text := value.(type) {
		case string:
			value = short(text)
		case node.Path:
			value = short(string(text))
		}
		all[name] = value
	}
	all["type"], all["title"], all["status"] = problemType+row.name, row.title, row.status
	all["detail"], all["code"], all["retry"] = short(p.Detail), row.name, row.retry
	if seconds := p.retrySeconds(); seconds > 0 {
		all["retryAfter"] = seconds
	}
	return marshal(all)
}

// Write answers a request with the problem.
func (p *Problem) Write(w http.ResponseWriter) { p.writeWith(w, "", "") }

// writeWith is Write with one header of the answer's own.
func (p *Problem) writeWith(w http.ResponseWriter, name, value string) {
	h := w.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Content-Disposition", "Content-Range", "Accept-Ranges", "Content-Length"} {
		h.Del(name) // of the answer that was meant
	}
	if value != "" {
		h.Set(name, value)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if seconds := p.retrySeconds(); seconds > 0 {
		h.Set("Retry-After", strconv.Itoa(seconds))
	}
	if p.Code == "unauthenticated" {
		h.Set("WWW-Authenticate", `Bearer realm="hubmesh"`)
	}
	body, err := marshal(p)
	if err != nil { // a member that is no JSON
		body, _ = marshal(&Problem{Code: p.Code, Detail: p.Detail}) // strings alone always marshal
	}
	w.WriteHeader(p.row().status)
	w.Write(append(body, '\n')) //nolint:errcheck // the caller has gone, if anything
}
