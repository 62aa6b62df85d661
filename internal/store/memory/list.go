package memory

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Children returns the direct children of path; see [store.Store].
func (s *Store) Children(ctx context.Context, path node.Path, page store.Page) ([]store.Entry, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	// Below a satellite everything is one, and asking there means wanting them.
	_, _, inside := path.Satellite()
	all := page.Satellites || inside

	var entries []store.Entry
	at := s.after(path)
	if page.After != "" {
		at = s.behind(child(path, page.After))
	}
	for at < len(s.order) && path.Contains(s.order[at]) && len(entries) < page.Size() {
		segment, _, _ := strings.Cut(string(s.order[at][prefixLen(path):]), "/")
		entry := store.Entry{Path: child(path, segment)}
		end := s.behind(entry.Path)
		if n, exists := s.nodes[entry.Path]; exists {
			shared := *n
			if page.NoContent {
				shared.Content = node.Content{}
			}
			entry.Node = &shared
		}
		shown := s.order[at:end]
		if entry.Node != nil {
			shown = shown[1:]
		}
		entry.HasChildren = slices.ContainsFunc(shown, func(p node.Path) bool { return inside || !s.nodes[p].IsSatellite() })
		main := entry.HasChildren || entry.Node != nil && !entry.Node.IsSatellite()
		if _, satellite := node.SatelliteKind(segment); all || main && !satellite {
			entries = append(entries, entry)
		}
		at = end
	}
	return entries, nil
}

// Descendants yields the paths below path; see [store.Store]. It reads page by page, so it holds no
// lock while the caller works.
func (s *Store) Descendants(ctx context.Context, path node.Path) iter.Seq2[node.Path, error] {
	return func(yield func(node.Path, error) bool) {
		last := path
		for {
			paths, err := s.below(ctx, path, last)
			if err != nil {
				yield("", err)
				return
			}
			for _, p := range paths {
				if !yield(p, nil) {
					return
				}
				last = p
			}
			if len(paths) == 0 {
				return
			}
		}
	}
}

// below returns the next paths below path, behind last.
func (s *Store) below(ctx context.Context, path, last node.Path) ([]node.Path, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	const most = 1000
	from := s.after(last)
	to := from
	for to < len(s.order) && to < from+most && path.Contains(s.order[to]) {
		to++
	}
	return slices.Clone(s.order[from:to]), nil
}

// after returns the index of the first path that follows path.
func (s *Store) after(path node.Path) int {
	i, found := slices.BinarySearchFunc(s.order, path, node.Path.Compare)
	if found {
		i++
	}
	return i
}

// behind returns the index of the first path that follows everything at and below path.
func (s *Store) behind(path node.Path) int {
	i, _ := slices.BinarySearchFunc(s.order, path, func(p, target node.Path) int {
		if target.Contains(p) || p.Compare(target) < 0 {
			return -1
		}
		return 1
	})
	return i
}

func prefixLen(base node.Path) int {
	if base == "" {
		return 0
	}
	return len(base) + 1
}

func child(base node.Path, segment string) node.Path {
	if base == "" {
		return node.Path(segment)
	}
	return base + "/" + node.Path(segment)
}
