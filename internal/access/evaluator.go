package access

import (
	"hash/maphash"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
)

// Verdict answers whether somebody may.
type Verdict uint8

// The verdicts. Undetermined fails closed, and is reported as worth another try (edge.md §2.2).
const (
	Undetermined Verdict = iota
	Denied
	Granted
)

func (v Verdict) String() string { return [...]string{"undetermined", "denied", "granted"}[v] }

// shardCount spreads the subjects, so that a change copies a small part of a snapshot.
const shardCount = 256

// scopes are the entries of one subject, by scope.
type scopes map[node.Path]entry

// Evaluator is a snapshot of all assignments. It never changes; it is safe for concurrent use and
// costs a look-up per level of a path. The zero value is not loaded: it determines nothing.
type Evaluator struct {
	loaded bool
	seed   maphash.Seed
	shards [shardCount]map[Subject]scopes
}

// Loaded tells whether the snapshot may be decided with.
func (e *Evaluator) Loaded() bool { return e.loaded }

func (e *Evaluator) of(subject Subject) scopes {
	return e.shards[e.shard(subject)][subject]
}

func (e *Evaluator) shard(subject Subject) uint8 {
	return uint8(maphash.String(e.seed, string(subject)))
}

// Permissions returns what subject may do with the node at path, existing or not. It is nothing as long
// as the snapshot is not loaded, except for System.
//
// For every (subject, role) the closest scope at or above the path that names the role decides, and at
// one scope a denial beats a grant; an authenticated subject adds what Public has; the partition that
// bears a subject's id, in any letter case, is that subject's own and makes it Admin there. A satellite
// has the permissions of its main node in its own terms: Read where that grants Read; Create, Update
// and Delete where that grants Update (a comment may be created with Comment); and what lies in _Access
// is open to who administers the scope, and to nobody else.
func (e *Evaluator) Permissions(subject Subject, path node.Path) Permission {
	if subject == System {
		return Everything
	}
	if !e.loaded {
		return 0
	}
	if subject == "" {
		subject = Anonymous
	}
	main, kind, satellite := path.Satellite()
	if !satellite {
		main = path
	}
	held := e.held(subject, main)
	if !satellite {
		return held
	}
	return held.onSatellite(kind)
}

// HoldsNothing tells whether nothing at all is granted to subject, anywhere.
func (e *Evaluator) HoldsNothing(subject Subject) bool {
	if subject == "" {
		subject = Anonymous
	}
	return e.loaded && subject != System && !subject.Authenticated() && len(e.of(subject)) == 0
}

// held folds the roles of subject at a main node.
func (e *Evaluator) held(subject Subject, path node.Path) Permission {
	held := permissions[fold(e.of(subject), path, ownScope(subject, path))]
	if subject.Authenticated() {
		held |= permissions[fold(e.of(Public), path, "")]
	}
	return held
}

// ownScope returns the partition of path where it is subject's own, else "".
func ownScope(subject Subject, path node.Path) node.Path {
	if !subject.Authenticated() {
		return ""
	}
	if partition := path.Partition(); strings.EqualFold(partition, string(subject)) {
		return node.Path(partition)
	}
	return ""
}

// fold walks from path to the root scope; each role is decided by the first scope that names it. At own
// the subject is Admin whatever the assignments there say.
func fold(of scopes, path, own node.Path) roles {
	var holds, decided roles
	if len(of) == 0 && own == "" {
		return 0
	}
	for at := path; ; at = at.Parent() {
		e := of[at]
		if own != "" && at == own {
			e.granted |= admin
			e.denied &^= admin
		}
		holds |= e.holds() &^ decided
		decided |= e.names()
		if at == "" {
			return holds
		}
	}
}

// onSatellite translates the permissions at a main node into those at its satellite of a kind.
func (p Permission) onSatellite(kind string) Permission {
	if kind == node.SatelliteAccess {
		if p.Has(Administer) {
			return p
		}
		return 0
	}
	const changing = Create | Update | Delete
	on := p &^ (changing | Administer)
	if p.Has(Update) {
		on |= changing
	}
	if kind == "_Comment" && p.Has(Comment) {
		on |= Create
	}
	return on
}

// Check decides whether subject may do all of need with the node at path.
func (e *Evaluator) Check(subject Subject, path node.Path, need Permission) Verdict {
	switch {
	case e.Permissions(subject, path).Has(need):
		return Granted
	case !e.loaded:
		return Undetermined
	default:
		return Denied
	}
}

// Require is Check as an error: nil, *[DeniedError] or *[UndeterminedError].
func (e *Evaluator) Require(subject Subject, path node.Path, need Permission) error {
	switch e.Check(subject, path, need) {
	case Granted:
		return nil
	case Undetermined:
		return &UndeterminedError{Path: path}
	default:
		return &DeniedError{Subject: subject, Path: path, Need: need}
	}
}

// Reaches tells whether subject holds a grant at a scope strictly below path. A listing shows such a
// level as a folder, so that what may be read below it can be reached; the node of the level stays
// hidden. It costs a look at each scope where subject or Public is named.
func (e *Evaluator) Reaches(subject Subject, path node.Path) bool {
	if subject == System {
		return true
	}
	if !e.loaded {
		return false
	}
	if subject == "" {
		subject = Anonymous
	}
	if subject.Authenticated() && below(e.of(Public), path) {
		return true
	}
	return below(e.of(subject), path)
}

func below(of scopes, path node.Path) bool {
	for scope, e := range of {
		if scope != path && path.Contains(scope) && e.holds() != 0 {
			return true
		}
	}
	return false
}
