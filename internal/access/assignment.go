package access

import (
	"fmt"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Assignment is what one AccessAssignment node says: at Scope, Subject has or is denied roles.
type Assignment struct {
	Scope   node.Path
	Subject Subject
	granted roles
	denied  roles
}

// Problem says why an assignment, or a role of one, counts for nothing.
type Problem struct {
	Path   node.Path
	Reason string
}

func (p Problem) String() string { return fmt.Sprintf("assignment %s: %s", p.Path, p.Reason) }

// content is the JSON of an assignment (edge.md §2.1).
type content struct {
	AccessObject string `json:"accessObject"`
	Roles        []struct {
		Role   string `json:"role"`
		Denied bool   `json:"denied"`
	} `json:"roles"`
}

// parseAssignment reads an assignment. The scope comes from the path alone, so that path and main node
// can not disagree (edge.md §2.2). ok is false where the node is no assignment that counts; problem is
// set where it was meant to be one. A role without a meaning is a problem, and the others stand.
func parseAssignment(n node.Node) (a Assignment, problem *Problem, ok bool) {
	scope, isAssignment := n.Path.Scope()
	if !isAssignment {
		return Assignment{}, nil, false
	}
	bad := func(format string, args ...any) (Assignment, *Problem, bool) {
		return Assignment{}, &Problem{Path: n.Path, Reason: fmt.Sprintf(format, args...)}, false
	}
	if n.NodeType != node.TypeAccessAssignment {
		return bad("its type is %q and not %s; it grants nothing", n.NodeType, node.TypeAccessAssignment)
	}
	if n.State != node.StateActive && n.State != node.StateNew {
		return Assignment{}, nil, false // not in force
	}
	var c content
	if err := n.Content.Decode(&c); err != nil {
		return bad("its content is not an assignment (%v); it grants nothing", err)
	}
	if c.AccessObject == "" {
		return bad("its content names no accessObject; it grants nothing")
	}
	a = Assignment{Scope: scope, Subject: Subject(c.AccessObject)}
	if len(c.Roles) == 0 {
		problem = &Problem{Path: n.Path, Reason: "its content lists no roles; it grants nothing"}
	}
	for _, r := range c.Roles {
		role, known := roleNamed(r.Role)
		switch {
		case !known:
			problem = &Problem{Path: n.Path, Reason: fmt.Sprintf("%q is no role; it grants and denies nothing", r.Role)}
		case r.Denied:
			a.denied |= role
		default:
			a.granted |= role
		}
	}
	return a, problem, true
}

// entry is the sum of the assignments of one subject at one scope.
type entry struct{ granted, denied roles }

// add returns the sum of two assignments: a denial beats a grant at the same scope.
func (e entry) add(a Assignment) entry {
	return entry{granted: e.granted | a.granted, denied: e.denied | a.denied}
}

// holds are the roles that the entry grants; names are those that it decides either way.
func (e entry) holds() roles { return e.granted &^ e.denied }
func (e entry) names() roles { return e.granted | e.denied }
