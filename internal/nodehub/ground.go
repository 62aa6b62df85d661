package nodehub

import (
	"context"
	"errors"
	"maps"
	"slices"

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
	n, err := s.store.Prefix(ctx, path.Parent())
	if err != nil {
		if errors.As(err, new(*store.NotFoundError)) {
			err = nil
		}
		return nil, err
	}
	return ground{path.Parent(): store.GroundOf(n)}, nil
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
				g[path.Parent()] = store.GroundOf(n)
				break
			}
		}
	}
	return g, nil
}

// under is the ground of a new node; the zero value where it has none.
func (g ground) under(path node.Path) store.Ground {
	if path.Depth() < 2 {
		return store.Ground{}
	}
	return g[path.Parent()]
}

// groundless answers a create whose ground was deleted meanwhile as a guard of this process does.
func groundless(err error) error {
	if gone := (*store.GroundError)(nil); errors.As(err, &gone) {
		return beingDeleted(gone.Path, gone.Ground)
	}
	return err
}
