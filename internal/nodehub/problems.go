package nodehub

// ProblemCode is the code of the error table.
func (e *SchemaError) ProblemCode() string { return "invalid_content" }

// ProblemMembers are further members of the problem.
func (e *SchemaError) ProblemMembers() map[string]any {
	reason := e.Reason
	if reason == "" {
		reason = e.Error()
	}
	return map[string]any{"errors": []string{reason}, "nodeType": e.NodeType}
}

// ProblemCode is the code of the error table.
func (e *TypeError) ProblemCode() string { return "invalid_content" }

// ProblemCode is the code of the error table.
func (e *RuleError) ProblemCode() string { return "bad_request" }

// ProblemCode is the code of the error table.
func (e *ChildrenError) ProblemCode() string { return "has_children" }

// ProblemCode is the code of the error table.
func (e *SubtreeError) ProblemCode() string { return "forbidden" }

// ProblemCode is the code of the error table.
func (e *PartialDeleteError) ProblemCode() string { return "unavailable" }

// ProblemMembers are further members of the problem.
func (e *PartialDeleteError) ProblemMembers() map[string]any {
	return map[string]any{"deleted": e.Deleted, "failed": string(e.Failed)}
}
