package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/hubmesh/hubmesh/internal/access"
	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// coded is an error that knows its own code.
type coded interface {
	error
	ProblemCode() string
}

// problemOf translates an error. Errors of the mesh are looked for in the whole chain, so a failure of a
// hub is told by its cause where that crossed no process, and by its type otherwise. What is not known is
// "internal", without a word of it to the caller.
func problemOf(err error) *Problem {
	for _, translate := range []func(error) *Problem{ownProblem, bodyProblem, nodeProblem, storeProblem, accessProblem, budgetProblem, failureProblem} {
		if p := translate(err); p != nil {
			return p
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return problem("lapsed", "no answer within the time that was left")
	}
	return problem("internal", "a fault of the server; its log has the details")
}

func ownProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var c coded
	if !errors.As(err, &c) {
		return nil
	}
	p = problem(c.ProblemCode(), c.Error())
	if wait, ok := c.(interface{ RetryAfter() time.Duration }); ok {
		p.Retry = wait.RetryAfter()
	}
	if members, ok := c.(interface{ ProblemMembers() map[string]any }); ok {
		p.Members = members.ProblemMembers()
	}
	return p
}

func bodyProblem(err error) *Problem {
	var size *http.MaxBytesError
	if errors.As(err, &size) {
		return problem("too_large", fmt.Sprintf("the body has more than %d bytes", size.Limit))
	}
	return nil
}

func nodeProblem(err error) *Problem {
	var path *node.PathError
	var content *node.ContentError
	var field *node.FieldError
	var syntax *query.SyntaxError
	var unsupported *query.UnsupportedError
	var size *query.SizeError
	switch {
	case errors.As(err, &size):
		return problem("invalid_query", size.Error())
	case errors.As(err, &path):
		return problem("invalid_path", path.Error())
	case errors.As(err, &content) && content.Kind == node.ContentSize:
		return problem("too_large", content.Reason)
	case errors.As(err, &content):
		return problem("invalid_json", content.Error()).with("offset", content.Offset)
	case errors.As(err, &field):
		return problem("bad_request", field.Error()).with("field", field.Field)
	case errors.As(err, &syntax):
		return problem("invalid_query", syntax.Error()).with("offset", syntax.Offset)
	case errors.As(err, &unsupported):
		return problem("invalid_query", unsupported.Error()).with("offset", unsupported.Offset)
	}
	return nil
}

func storeProblem(err error) *Problem {
	var missing *store.NotFoundError
	var exists *store.ExistsError
	var conflict *store.ConflictError
	var partition *store.PartitionError
	var row *store.RowError
	var away *store.UnavailableError
	var unknown *store.OutcomeUnknownError
	var scan *store.ScanLimitError
	switch {
	case errors.As(err, &unknown):
		return problem("unavailable", fmt.Sprintf("the write of '%s' may have happened or not: read it to find out", unknown.Path)).with("outcome", "unknown")
	case errors.As(err, &scan):
		return problem("invalid_query", strings.TrimPrefix(scan.Error(), "store: "))
	case errors.As(err, &missing):
		return absent(missing.Path)
	case errors.As(err, &exists):
		p := problem("exists", exists.Error()).with("version", exists.Version)
		if exists.Other != "" && exists.Other != exists.Path {
			p = p.with("other", exists.Other)
		}
		return p
	case errors.As(err, &conflict):
		return problem("conflict", conflict.Error()).with("expected", conflict.Expected).with("actual", conflict.Actual)
	case errors.As(err, &partition):
		return problem("partition_missing", partition.Error()+"; create the space first").
			with("partition", partition.Partition).with("reason", partition.Reason)
	case errors.As(err, &row):
		return problem("bad_request", row.Error())
	case errors.Is(err, store.ErrBatchDuplicate):
		return problem("bad_request", "a path may stand in a list once").with("field", "path")
	case errors.Is(err, syscall.ENOSPC), errors.As(err, &away) && away.Kind == store.UnavailableFull:
		return problem("storage_full", "the disk is full; nothing was written")
	case errors.As(err, &away):
		return problem("unavailable", fmt.Sprintf("the store can not do this now: %s", away.Hint))
	case errors.Is(err, store.ErrOverloaded):
		return problem("overloaded", store.ErrOverloaded.Error())
	case errors.Is(err, store.ErrClosed):
		return problem("shutting_down", "the server is going down")
	}
	return nil
}

// absent is the one answer for what is not there and for what is not the caller's to read.
func absent(path node.Path) *Problem {
	if path == "" {
		return problem("not_found", "there is nothing here, or it is not yours to read")
	}
	return problem("not_found", fmt.Sprintf("No node found at '%s'", path))
}

func accessProblem(err error) *Problem {
	var denied *access.DeniedError
	var undetermined *access.UndeterminedError
	var last *access.LastAdminError
	var subject *access.SubjectError
	switch {
	case errors.As(err, &denied) && denied.Need&access.Read != 0:
		return absent(denied.Path)
	case errors.As(err, &denied):
		return problem("forbidden", denied.Error())
	case errors.As(err, &undetermined):
		return problem("undetermined", undetermined.Error())
	case errors.As(err, &last):
		return problem("forbidden", last.Error())
	case errors.As(err, &subject):
		return problem("bad_request", subject.Error()).with("field", "subject")
	}
	return nil
}

func budgetProblem(err error) *Problem {
	var lapse *budget.Lapse
	var small *budget.TooSmall
	switch {
	case errors.As(err, &lapse):
		p := problem("lapsed", lapse.Error())
		p.Members = map[string]any{
			"bound": lapse.Bound.String(), "size_ms": lapse.Size.Milliseconds(), "elapsed_ms": lapse.Elapsed.Milliseconds(),
			"operation": lapse.Operation, "target": lapse.Target, "reported_by": lapse.ReportedBy, "progress": lapse.Progress.String(),
		}
		if lapse.By != lapse.Bound {
			p.Members["clipped_by"] = lapse.By.String()
		}
		if lapse.Clause != "" {
			p.Members["clause"] = lapse.Clause
		}
		return p
	case errors.As(err, &small):
		return problem("lapsed", small.Error()).with("bound", small.Bound.String()).with("clipped_by", small.By.String())
	}
	return nil
}

func failureProblem(err error) *Problem {
	var f *message.Failure
	if !errors.As(err, &f) {
		return nil
	}
	var p *Problem
	switch f.Type {
	case message.NotFound, message.Unauthorized:
		return absent(node.Path(f.Target)) // Unauthorized: may not even read
	case message.Forbidden:
		return problem("forbidden", f.Message)
	case message.Rejected:
		return problem("bad_request", f.Message)
	case message.ShuttingDown:
		switch f.Reason {
		case message.ReasonOverloaded:
			p = problem("overloaded", f.Error())
		case message.ReasonStarting:
			p = problem("starting", f.Error())
		case message.ReasonBudget:
			p = problem("lapsed", f.Error())
		case message.ReasonUnavailable, message.ReasonLost:
			p = problem("unavailable", f.Error())
		default:
			p = problem("shutting_down", f.Error())
		}
	default:
		return nil
	}
	p.Retry = f.RetryAfter
	if f.OutcomeUnknown {
		p = p.with("outcome", "unknown")
	}
	return p
}
