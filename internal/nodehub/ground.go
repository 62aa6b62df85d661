package nodehub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/hubmesh/hubmesh/internal/message"
	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// ground is what new nodes stand on: the nearest node above each, as it was before they were permitted. The
// guards of a process do not know the deletions of others on the same database, so the store takes their place
// there: it commits a create only on its ground, and the end of a deletion only when nothing is left below
// (deleteRoot). docs/decisions/deletions-of-other-silos.md.
type ground map[node.Path]store.Ground // by the path of the parent

// ground looks at what a new node at path will stand on. It is nil where no other process writes the store.
func (s *Service) ground(ctx context.Context, path node.Path) (ground, error) {
	if !s.shared || path.Depth() < 2 {
		return nil, nil
	}
	for at := path.Parent(); ; {
		n, err := s.store.Prefix(ctx, at)
		switch {
		case errors.As(err, new(*store.NotFoundError)):
			return noSpace(path), nil
		case err != nil:
			return nil, err
		}
		scope, passing := passes(n.Path)
		if !passing {
			return ground{path.Parent(): store.GroundOf(n)}, nil
		}
		at = scope
	}
}

// passes tells whether a node is no ground, and above what it is not: an assignment goes after the node that it
// stands below.
func passes(path node.Path) (scope node.Path, passing bool) {
	scope, assignment := path.Scope()
	return scope, assignment && !scope.IsRoot()
}

// noSpace is the ground of a path above which nothing stands, not even its space: none, until that is there.
func noSpace(path node.Path) ground {
	if partition := path.Partition(); partition != string(node.RootAccess) {
		return ground{path.Parent(): store.NoSpace(partition)}
	}
	return nil
}

// grounds is ground for many, and settles what was deleted there.
func (s *Service) grounds(ctx context.Context, paths []node.Path) (ground, error) {
	if !s.shared {
		return nil, nil
	}
	if err := s.settleAt(ctx, paths...); err != nil {
		return nil, err
	}
	above := map[node.Path]node.Node{}
	for _, path := range paths {
		for p := range path.Ancestors() {
			above[p] = node.Node{}
		}
	}
	for slice := range slices.Chunk(slices.SortedFunc(maps.Keys(above), node.Path.Compare), deleteSlice) {
		rows, err := s.store.ReadMany(ctx, slice)
		if err != nil {
			return nil, err
		}
		for _, n := range rows {
			above[n.Path] = n
		}
	}
	g := ground{}
	for _, path := range paths {
		for p := range path.Ancestors() { // the deepest comes first
			if n := above[p]; n.Path != "" {
				if _, passing := passes(n.Path); passing {
					continue
				}
				g[path.Parent()] = store.GroundOf(n)
				break
			}
		}
		if g[path.Parent()].Path == "" && path.Depth() > 1 {
			maps.Copy(g, noSpace(path))
		}
	}
	return g, nil
}

// toldBound is how long a create at a path that has had a node before waits for the news of its deletion.
const toldBound = 3 * time.Second

var errTold = errors.New("nodehub: what other processes have committed was not told here within 3 s")

// catchUp has what was granted at an earlier life of path be forgotten here before its next one is made: another
// process may have deleted it, with its assignments. Nothing is made where that is not sure.
func (s *Service) catchUp(ctx context.Context, path node.Path) error {
	if s.told == nil {
		return nil
	}
	bound, cancel := context.WithTimeoutCause(ctx, toldBound, errTold)
	defer cancel()
	if err := s.told(bound); err != nil {
		return &message.Failure{Type: message.ShuttingDown, Target: string(path), Reason: message.ReasonStarting, AnsweredBy: "nodeops", RetryAfter: time.Second,
			Message: "this process has not been told yet what others have deleted at '" + string(path) + "'; nothing was written, try again", Cause: err}
	}
	return nil
}

// livedBefore tells whether there may have been a node at a path, or at a level above it that has none now, to which
// something was granted. last is the version of its tombstone.
func (g ground) livedBefore(path node.Path, last int64) bool {
	return last > 0 || g.under(path).Path != path.Parent()
}

// under is the ground of a new node; the zero value where it has none.
func (g ground) under(path node.Path) store.Ground {
	if path.Depth() < 2 {
		return store.Ground{}
	}
	return g[path.Parent()]
}

// groundless answers a create whose ground was deleted meanwhile, or whose space another process is deleting, as a
// guard of this process does.
func groundless(err error) error {
	if gone := (*store.GroundError)(nil); errors.As(err, &gone) {
		return beingDeleted(gone.Path, gone.Ground)
	}
	if p := (*store.PartitionError)(nil); errors.As(err, &p) && p.Reason == store.ReasonDeleting {
		return beingDeleted(node.Path(p.Partition), node.Path(p.Partition))
	}
	return err
}
