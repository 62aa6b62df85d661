package access

import (
	"context"
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Accounts knows who can sign in, for the guard of the last Admin. Implementations are safe for concurrent use.
type Accounts interface {
	// Enter returns once no other process is between Enter and leave, and every change that was committed before, by
	// whichever process, has been applied to the index. leave is called when the change is made or given up.
	Enter(ctx context.Context) (leave func(), err error)
	// CanSignIn lists those of some subjects who can sign in by now.
	CanSignIn(ctx context.Context, subjects []Subject) ([]Subject, error)
}

// GuardFor makes [Index.Admit] look at who can sign in. Call it before the first change; without it every account
// counts as one that can.
func (x *Index) GuardFor(a Accounts) { x.accounts = a }

// Admit checks a change before it is committed: *[LastAdminError] when it would leave the root scope
// without an Admin, or without one who can sign in, although there is one now (edge.md §2.3). An admitted change counts as
// made until release is called, so that of two changes that each keep one of the last two Admins only one is
// admitted; what another admitted change grants does not count before it is applied, as it may be given up. Call
// release when the change is committed and applied, or given up. A change of anything else is admitted and reserves
// nothing. Other errors are those of [Accounts]: who is left could not be found out.
func (x *Index) Admit(ctx context.Context, c Change) (release func(), err error) {
	if scope, ok := c.Path.Scope(); !ok || scope != "" {
		return func() {}, nil
	}
	x.mu.Lock()
	if lost, _ := x.outcome(c); len(lost) == 0 {
		defer x.mu.Unlock()
		return x.reserve(&c), nil
	}
	x.mu.Unlock()
	// Somebody loses the right: one such change at a time, as it waits for what others know.
	if err := x.enterGuard(ctx); err != nil {
		return nil, err
	}
	defer x.leaveGuard()
	leave := func() {}
	if x.accounts != nil {
		if leave, err = x.accounts.Enter(ctx); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	lost, left := x.outcome(c)
	if len(lost) > 0 && len(left) == 0 {
		x.mu.Unlock()
		leave()
		return nil, &LastAdminError{Path: c.Path}
	}
	free := x.reserve(&c) // it counts while the accounts are asked
	x.mu.Unlock()
	release = func() {
		free()
		leave()
	}
	if x.accounts == nil || len(lost) == 0 {
		return release, nil
	}
	can, err := x.accounts.CanSignIn(ctx, slices.Concat(lost, left))
	if err == nil && len(can) > 0 && !slices.ContainsFunc(left, func(s Subject) bool { return slices.Contains(can, s) }) {
		err = &LastAdminError{Path: c.Path, Left: left}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// outcome tells who is Admin of the root scope before a change and not after it, and who is after it. Changes that are
// reserved take away, and do not give.
func (x *Index) outcome(c Change) (lost, left []Subject) {
	pending := make([]Change, 0, len(x.reserved)+1)
	for r := range x.reserved {
		pending = append(pending, *r)
	}
	both := func(some, others []Subject) []Subject {
		return slices.DeleteFunc(some, func(s Subject) bool { return !slices.Contains(others, s) })
	}
	before := both(x.rootAdmins(nil), x.rootAdmins(pending))
	left = both(x.rootAdmins([]Change{c}), x.rootAdmins(append(pending, c)))
	return slices.DeleteFunc(before, func(s Subject) bool { return slices.Contains(left, s) }), left
}

func (x *Index) reserve(c *Change) (release func()) {
	x.reserved[c] = struct{}{}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.reserved, c)
	}
}

func (x *Index) enterGuard(ctx context.Context) error {
	select {
	case x.guard <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *Index) leaveGuard() { <-x.guard }

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

// RootDenials lists the nodes at the root scope that deny something to a subject, in order.
func (x *Index) RootDenials(subject Subject) (denials []node.Path) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for path := range x.targets[target{subject: subject}] {
		if x.nodes[path].assigned.denied != 0 {
			denials = append(denials, path)
		}
	}
	slices.Sort(denials)
	return denials
}
