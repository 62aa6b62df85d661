package content

import "time"

// ProblemCode is the code of the error table.
func (e *NotFoundError) ProblemCode() string { return "not_found" }

// ProblemCode is the code of the error table.
func (e *ReadOnlyError) ProblemCode() string { return "forbidden" }

// ProblemCode is the code of the error table.
func (e *TooLargeError) ProblemCode() string { return "too_large" }

// ProblemCode is the code of the error table.
func (e *FullError) ProblemCode() string { return "storage_full" }

// ProblemCode is the code of the error table.
func (e *CollectionError) ProblemCode() string {
	if e.Broken {
		return "bad_request"
	}
	return "not_found"
}

// ProblemMembers are further members of the problem.
func (e *CollectionError) ProblemMembers() map[string]any {
	return map[string]any{"collection": e.Collection}
}

// ProblemCode is the code of the error table.
func (e *UnpublishedError) ProblemCode() string { return "exists" }

// ProblemMembers are further members of the problem.
func (e *UnpublishedError) ProblemMembers() map[string]any {
	return map[string]any{"collection": e.Collection}
}

// ProblemCode is the code of the error table.
func (e *ConditionError) ProblemCode() string { return "stale" }

// ProblemCode is the code of the error table.
func (*BusyError) ProblemCode() string { return "unavailable" }

// ProblemCode is the code of the error table.
func (e *FolderError) ProblemCode() string { return "not_found" }

// ProblemMembers are further members of the problem.
func (e *FolderError) ProblemMembers() map[string]any { return map[string]any{"dir": e.Dir} }

// ProblemCode is the code of the error table.
func (e *InTheWayError) ProblemCode() string { return "exists" }

// ProblemCode is the code of the error table.
func (e *NameError) ProblemCode() string { return "invalid_path" }

// ProblemCode is the code of the error table.
func (u *Unreachable) ProblemCode() string { return "lapsed" }

// RetryAfter is how long to wait before a new request.
func (u *Unreachable) RetryAfter() time.Duration { return 2 * time.Second }

// ProblemMembers are the facts of the log line.
func (u *Unreachable) ProblemMembers() map[string]any {
	return map[string]any{
		"line": u.Line, "target": u.Target, "elapsed_ms": u.ElapsedMS, "budget_ms": u.BudgetMS, "bound": u.Bound, "clipped_by": u.ClippedBy,
		"reported_by": u.ReportedBy, "reader": u.Reader, "clause": u.Clause,
	}
}
