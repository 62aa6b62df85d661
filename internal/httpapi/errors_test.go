package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/store"
)

// laterError is an error of an upper package with all that it may say.
type laterError struct{}

func (laterError) Error() string       { return "the content has no title" }
func (laterError) ProblemCode() string { return "invalid_content" }
func (laterError) ProblemMembers() map[string]any {
	return map[string]any{"errors": []string{"/title"}}
}

// edge §1.2, edge invariant 11, edge invariant 12
func TestEachErrorHasItsStatusAndItsCode(t *testing.T) {
	lapse := &budget.Lapse{Bound: budget.Read, By: budget.Request, Size: 10 * time.Second, Elapsed: 9 * time.Second, Operation: "node/get",
		Target: "acme", ReportedBy: budget.ByOwner, Clause: "STILL STARTING: gate 'Initialize' closed for 9s"}
	failure := func(kind message.ErrorType, reason string) error {
		return &message.Failure{Type: kind, Reason: reason, Message: "the text", Target: "acme", AnsweredBy: "acme", RetryAfter: 3 * time.Second}
	}
	tests := []struct {
		name   string
		err    error
		status int
		code   string
		want   []string
	}{
		{"a missing node", &store.NotFoundError{Path: "acme/secret"}, 404, "not_found", []string{"No node found at 'acme'", "!secret"}},
		{"a read that is denied is told like a missing node", &access.DeniedError{Subject: "bob", Path: "acme", Need: access.Read}, 404, "not_found", []string{"No node found at 'acme'", "!bob"}},
		{"a write that is denied", &access.DeniedError{Subject: "bob", Path: "acme", Need: access.Update}, 403, "forbidden", []string{"bob lacks Update on 'acme'"}},
		{"undetermined is no denial", &access.UndeterminedError{Path: "acme"}, 503, "undetermined", []string{"Retry-After: 5", `"retry":"after"`}},
		{"the last Admin", &access.LastAdminError{Path: "_Access/x"}, 403, "forbidden", nil},
		{"an existing node", &store.ExistsError{Path: "acme/A", Version: 2, Other: "acme/a"}, 409, "exists", []string{`"other":"acme/a"`}},
		{"a conflict", &store.ConflictError{Path: "acme", Expected: 1, Actual: 2}, 409, "conflict", []string{`"actual":2`, `"retry":"now"`}},
		{"a conflict inside of a failure", &message.Failure{Type: message.Failed, Cause: &store.ConflictError{Path: "acme"}}, 409, "conflict", nil},
		{"a partition", &store.PartitionError{Partition: "x", Reason: "deleting"}, 409, "partition_missing", []string{`"reason":"deleting"`}},
		{"a row", &store.RowError{Path: "acme", Err: errors.New("text with NUL")}, 400, "bad_request", nil},
		{"a full queue", fmt.Errorf("commit: %w", store.ErrOverloaded), 503, "overloaded", []string{"Retry-After: 5"}},
		{"a closed store", store.ErrClosed, 503, "shutting_down", nil},
		{"a store that is away", &store.UnavailableError{Op: "commit", Hint: "another process holds the file", Err: errors.New("secret/path.db is locked")}, 503, "unavailable", []string{"another process holds the file", "!secret"}},
		// bad input: a full disk
		{"a row that something else holds", &store.LockedError{Path: "acme/x", Err: &store.UnavailableError{Op: "commit", Hint: "end that", Transient: true, Err: errors.New("secret")}}, 503, "unavailable", []string{"end that", "!secret"}},
		{"a full disk", &store.UnavailableError{Op: "commit", Err: &fs.PathError{Op: "write", Path: "/secret", Err: syscall.ENOSPC}}, 507, "storage_full", []string{"!secret", "nothing was written"}},
		{"a full disk as the store tells it", &store.UnavailableError{Kind: store.UnavailableFull, Err: errors.New("/secret")}, 507, "storage_full", []string{"!secret"}},
		{"an outcome that is not known is told so even though its reason is a lapse", &store.OutcomeUnknownError{Path: "acme", Err: lapse}, 503, "unavailable", []string{`"outcome":"unknown"`}},
		{"a query that looks at too much", &store.ScanLimitError{Rows: 7}, 400, "invalid_query", []string{"more than 7 nodes"}},
		{"a query that is too dear", &store.ScanLimitError{Work: 7}, 400, "invalid_query", []string{"more than 7 bytes", `"retry":"never"`, "!Retry-After"}},
		{"a lapse tells what was observed", fmt.Errorf("reading: %w", lapse), 503, "lapsed", []string{"Retry-After: 5", `"bound":"read"`, `"clipped_by":"request"`, `"elapsed_ms":9000`,
			`"reported_by":"owner"`, "STILL STARTING", `"target":"acme"`}},
		{"a budget that is too small", &budget.TooSmall{Bound: budget.Read, By: budget.Request}, 503, "lapsed", nil},
		{"a bare deadline", context.DeadlineExceeded, 503, "lapsed", nil},
		{"a hub that is not there", failure(message.NotFound, ""), 404, "not_found", nil},
		{"a hub that goes down", failure(message.ShuttingDown, message.ReasonStopping), 503, "shutting_down", []string{"Retry-After: 3"}},
		{"a hub that starts", failure(message.ShuttingDown, message.ReasonStarting), 503, "starting", nil},
		{"a hub that is full", failure(message.ShuttingDown, message.ReasonOverloaded), 503, "overloaded", nil},
		{"what a hub needs is away", failure(message.ShuttingDown, message.ReasonUnavailable), 503, "unavailable", nil},
		{"unauthorized by a hub: may not even read", failure(message.Unauthorized, ""), 404, "not_found", []string{"!the text"}},
		{"forbidden by a hub: may read", failure(message.Forbidden, ""), 403, "forbidden", []string{"the text"}},
		{"rejected by a hub", failure(message.Rejected, ""), 400, "bad_request", nil},
		{"a write with an outcome that is not known", &message.Failure{Type: message.ShuttingDown, OutcomeUnknown: true}, 503, "shutting_down", []string{`"outcome":"unknown"`}},
		{"an error with a code of its own", fmt.Errorf("patch: %w", laterError{}), 422, "invalid_content", []string{"has no title", `"errors":["/title"]`}},
		{"a bug of a handler says nothing", failure(message.Exception, message.ReasonPanic), 500, "internal", []string{"!the text", `"request":`}},
		{"an unknown error says nothing", errors.New("password=1234"), 500, "internal", []string{"!1234", `"request":`}},
		{"a code that is not in the table", problem("no_such_code", "x"), 500, "internal", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := newMesh()
			m.fail = test.err
			_, base := serve(t, m)
			scenario{method: "GET", target: "/api/nodes/acme", status: test.status,
				want: append([]string{`"code":"` + test.code + `"`, "Content-Type: application/problem+json"}, test.want...)}.run(t, base)
		})
	}
}

// panicking is a service with a bug.
type panicking struct{ Inspector }

func (panicking) Why(context.Context, string) (any, error) { panic("secret state") }

func TestAPanicIsAnInternalErrorAndSaysNothing(t *testing.T) {
	_, base := serve(t, newMesh(), func(c *Config) { c.Inspector = panicking{} })
	scenario{method: "GET", target: "/api/why/acme", status: 500, want: []string{`"code":"internal"`, "!secret"}}.run(t, base)
}

func TestARouteWithoutItsServiceIsUnavailable(t *testing.T) {
	_, base := serve(t, newMesh(), func(c *Config) { c.Services = Services{} })
	for i := range operations {
		op := &operations[i]
		if op.needs == nil {
			continue
		}
		target := strings.NewReplacer("{path}", "acme", "{node}/{collection}/{file}", "acme/content/a", "{node}", "acme", "{address}", "acme", "{id}", "1").Replace(op.path)
		if got := send(t, base, op.method, target, nil, nil); got.status != 503 || !strings.Contains(got.body, `"unavailable"`) {
			t.Errorf("%s %s: %d %s", op.method, target, got.status, got.body)
		}
	}
}

var update = flag.Bool("update", false, "write docs/errors.md")

func TestTheErrorsPageIsTheTable(t *testing.T) {
	const file = "../../docs/errors.md"
	if *update {
		if err := os.WriteFile(file, []byte(errorsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != errorsPage() {
		t.Fatalf("docs/errors.md is not made from the table (%v): run `go test ./internal/httpapi -run ErrorsPage -update`", err)
	}
}

func apiPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheCodesOfTheAPIPageAreTheTable(t *testing.T) {
	_, page, ok := strings.Cut(apiPage(t), "| code | status | retry |")
	if !ok {
		t.Fatal("docs/api.md has no table of codes")
	}
	listed := map[string]string{}
	row := regexp.MustCompile(`(?m)^\| (.*) \| (\d+) \| (\w+) \|$`)
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[1], -1) {
			listed[name[1]] = m[2] + " " + m[3]
		}
	}
	for _, c := range codes {
		want := fmt.Sprintf("%d %s", c.status, c.retry)
		if listed[c.name] != want {
			t.Errorf("%s is %q in docs/api.md, %q in the table", c.name, listed[c.name], want)
		}
		delete(listed, c.name)
	}
	for name := range listed {
		t.Errorf("docs/api.md has %s, the table has not", name)
	}
}

func TestAProblemWithAMemberThatIsNoJSONIsStillAProblem(t *testing.T) {
	m := newMesh()
	m.fail = problem("conflict", "x").with("bad", func() {})
	_, base := serve(t, m)
	got := send(t, base, http.MethodGet, "/api/nodes/acme", nil, nil)
	var p map[string]any
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || p["code"] != "conflict" {
		t.Fatalf("%v: %s", err, got.body)
	}
}
