package access

import (
	"maps"
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Admit checks a change before it is committed: *[LastAdminError] when it would leave the root scope
// without an Admin although there is one now (edge.md §2.3). An admitted change counts as made until
// release is called, so that of two changes that each keep one of the last two Admins only one is
// admitted. Call release when the change is committed and applied, or given up. A change of anything
// else is admitted and reserves nothing.
func (x *Index) Admit(c Change) (release func(), err error) {
	if scope, ok := c.Path.Scope(); !ok || scope != "" {
		return func() {}, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	pending := make([]Change, 0, len(x.reserved)+1)
	for r := range x.reserved {
		pending = append(pending, *r)
	}
	if len(x.rootAdmins(pending)) > 0 && len(x.rootAdmins(append(pending, c))) == 0 {
		return nil, &LastAdminError{Path: c.Path}
	}
	x.reserved[&c] = struct{}{}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.reserved, &c)
	}, nil
}

// rootAdmins lists the accounts that are Admin of the root scope once the pending changes are made.
// Public and Anonymous are nobody's account and do not count.
func (x *Index) rootAdmins(pending []Change) []Subject {
	byPath := map[node.Path]*Assignment{}
	for t, paths := range x.targets {
		if t.scope != "" {
			continue
		}
		for path := range paths {
			byPath[path] = x.nodes[path].assigned
		}
	}
	for _, c := range pending {
		delete(byPath, c.Path)
		if c.Deleted {
			continue
		}
		n := c.Node
		n.Path = c.Path
		if a, _, ok := parseAssignment(n); ok {
			byPath[c.Path] = &a
		}
	}
	sums := map[Subject]entry{}
	for _, a := range byPath {
		sums[a.Subject] = sums[a.Subject].add(*a)
	}
	var list []Subject
	for subject, sum := range sums {
		if subject.Authenticated() && sum.holds()&admin != 0 {
			list = append(list, subject)
		}
	}
	slices.Sort(list)
	return list
}

// RootAdmins lists the accounts that are Admin of the root scope by its own assignments, in order.
func (x *Index) RootAdmins() []Subject {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rootAdmins(nil)
}

// RootAssignments lists the nodes at the root scope that assign something to a subject, or deny it, in order.
func (x *Index) RootAssignments(subject Subject) []node.Path {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Keys(x.targets[target{subject: subject}]))
}
