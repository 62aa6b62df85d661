package memory

import (
	"context"
	"slices"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/query"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Read returns the node at path; see [store.Store].
func (s *Store) Read(ctx context.Context, path node.Path) (node.Node, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return node.Node{}, err
	}
	if n, exists := s.nodes[path]; exists {
		return *n, nil
	}
	return node.Node{}, s.notFound(path)
}

// ReadMany returns the nodes that exist; see [store.Store].
func (s *Store) ReadMany(ctx context.Context, paths []node.Path) ([]node.Node, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	var nodes []node.Node
	for _, path := range paths {
		if n, exists := s.nodes[path]; exists {
			nodes = append(nodes, *n)
		}
	}
	return nodes, nil
}

// Prefix returns the deepest existing node at or above path; see [store.Store].
func (s *Store) Prefix(ctx context.Context, path node.Path) (node.Node, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return node.Node{}, err
	}
	for at := path; at != ""; at = at.Parent() {
		if n, exists := s.nodes[at]; exists {
			return *n, nil
		}
	}
	return node.Node{}, s.notFound(path)
}

// Select returns the nodes that q matches; see [store.Store].
func (s *Store) Select(ctx context.Context, q query.Query) ([]node.Node, error) {
	candidates, err := s.candidates(ctx, q.Bounds())
	if err != nil {
		return nil, err
	}
	return store.Collect(q, func(yield func(node.Node, error) bool) {
		for _, n := range candidates {
			if err := ctx.Err(); err != nil {
				yield(node.Node{}, err)
				return
			}
			if !yield(*n, nil) {
				return
			}
		}
	}, s.options.ScanRows, s.options.ScanBytes)
}

// candidates collects what the bounds admit, so that matching needs no lock.
func (s *Store) candidates(ctx context.Context, bounds query.Bounds) ([]*node.Node, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	paths := s.order
	if !bounds.MainToo && len(bounds.Parents) == 0 && len(bounds.Below) == 0 {
		paths = slices.SortedFunc(slices.Values(bounds.Paths), node.Path.Compare)
	}
	var found []*node.Node
	for _, path := range paths {
		if n, exists := s.nodes[path]; exists && bounds.Admits(*n) {
			found = append(found, n)
		}
	}
	return found, nil
}

// Versions lists the history of path; see [store.Store].
func (s *Store) Versions(ctx context.Context, path node.Path, page store.VersionPage) ([]store.VersionInfo, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	var infos []store.VersionInfo
	for _, v := range slices.Backward(s.history[path]) {
		if page.Before > 0 && v.info.Version >= page.Before {
			continue
		}
		if len(infos) == page.Size() {
			break
		}
		infos = append(infos, v.info)
	}
	return infos, nil
}

// At returns the node as it was at version; see [store.Store].
func (s *Store) At(ctx context.Context, path node.Path, number int64) (node.Node, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return node.Node{}, err
	}
	for _, v := range s.history[path] {
		if v.info.Version == number && v.node != nil {
			return *v.node, nil
		}
	}
	return node.Node{}, &store.NotFoundError{Path: path, LastVersion: s.tombstones[path], Version: number}
}
