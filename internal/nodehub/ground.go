package nodehub

import (
	"context"
	"errors"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// ground is what new nodes stand on: the nearest node above each, as it was before they were permitted. The
// guards of a process do not know the deletions of others on the same database, so two looks take their place
// there: the deletion looks once more after its root is gone (deleteTree), and a create looks at its ground after
// its commit. Whichever comes last sees the other. docs/decisions/deletions-of-other-silos.md.
type ground struct {
	s      *Service
	at     map[node.Path]node.Node // by the path of the parent; without a path: there was none
	looked map[node.Path]bool      // by the path of the parent: whether it is gone, after the commit
}

// ground returns an empty one; nil where no other process writes the store.
func (s *Service) ground() *ground {
	if !s.shared {
		return nil
	}
	return &ground{s, map[node.Path]node.Node{}, map[node.Path]bool{}}
}

// note looks at what a new node will stand on.
func (g *ground) note(ctx context.Context, path node.Path) error {
	if g == nil || path.Depth() < 2 {
		return nil
	}
	parent := path.Parent()
	if _, known := g.at[parent]; known {
		return nil
	}
	n, err := g.s.store.Prefix(ctx, parent)
	if err != nil && !errors.As(err, new(*store.NotFoundError)) {
		return err
	}
	g.at[parent] = n
	return nil
}

// gone tells which node a new one stood on that has been deleted since. It is for after the commit. What can not
// be told is logged.
func (g *ground) gone(ctx context.Context, path node.Path) (root node.Path, gone bool) {
	if g == nil || path.Depth() < 2 {
		return "", false
	}
	before, known := g.at[path.Parent()]
	if !known || before.Path == "" {
		return "", false
	}
	gone, known = g.looked[path.Parent()]
	if !known {
		gone = g.look(ctx, path, before)
		g.looked[path.Parent()] = gone
	}
	return before.Path, gone
}

func (g *ground) look(ctx context.Context, path node.Path, before node.Node) (gone bool) {
	n, err := g.s.store.Read(ctx, before.Path)
	switch {
	case errors.As(err, new(*store.NotFoundError)):
		return true
	case err != nil:
		g.s.log.Warn("whether a deletion has met a create could not be read", "address", string(path), "above", string(before.Path), "error", err)
		return false
	}
	return !n.CreatedAt.Equal(before.CreatedAt) // another life
}

// takeBack deletes a new node whose ground is gone, and is the answer to its writer.
func (s *Service) takeBack(ctx context.Context, n node.Node, root node.Path) error {
	_, err := s.commit(ctx, s.tombstone(ctx, n))
	var missing *store.NotFoundError
	var changed *store.ConflictError
	if err != nil && !errors.As(err, &missing) && !errors.As(err, &changed) {
		return err
	}
	return beingDeleted(n.Path, root)
}

// stragglers deletes what other processes have created below a root since its deletion looked last. The caller's
// permission was asked for the tree; what it may do may have gone with it.
func (s *Service) stragglers(ctx context.Context, root node.Path) (deleted int, err error) {
	for pass := 0; s.shared; pass++ {
		var left []node.Path
		for p, err := range s.store.Descendants(ctx, root) {
			if err != nil {
				return deleted, err
			}
			if left = append(left, p); len(left) > deleteMost {
				break
			}
		}
		if len(left) == 0 {
			break
		}
		if pass == deletePasses {
			return deleted, &PartialDeleteError{Path: root, Deleted: deleted, Failed: left[0], Err: errors.New("nodes keep appearing below it")}
		}
		n, err := s.deleteAll(ctx, root, deepestFirst(left), nil)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}
