package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// EnsurePartition provisions a partition; see [store.Store].
func (s *Store) EnsurePartition(ctx context.Context, name, by string) error {
	if err := store.CheckPartitionName(name); err != nil {
		return err
	}
	if name == string(node.RootAccess) {
		return nil
	}
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if known, exists := s.partitions[node.Fold(name)]; exists {
		return store.AdmitPartition(known, name)
	}
	s.partitions[node.Fold(name)] = store.Partition{Name: name, CreatedAt: node.Stamp(s.options.Now()), CreatedBy: by}
	return nil
}

// Partitions lists the partitions; see [store.Store].
func (s *Store) Partitions(ctx context.Context) ([]store.Partition, error) {
	defer s.mu.RUnlock()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	var all []store.Partition
	for _, p := range s.partitions {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b store.Partition) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// MarkPartition marks a partition as being deleted; see [store.Store].
func (s *Store) MarkPartition(ctx context.Context, name string, deleting bool) error {
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	p, exists := s.partitions[node.Fold(name)]
	if !exists || p.Name != name {
		return store.MissingPartition(name)
	}
	p.Deleting = deleting
	s.partitions[node.Fold(name)] = p
	return nil
}

// RemovePartition removes an empty partition and its history; see [store.Store].
func (s *Store) RemovePartition(ctx context.Context, name string) error {
	done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	p, exists := s.partitions[node.Fold(name)]
	if !exists || p.Name != name {
		return store.MissingPartition(name)
	}
	top := node.Path(name)
	if _, exists := s.nodes[top]; exists || s.after(top) < s.behind(top) {
		return &store.PartitionError{Partition: name, Reason: store.ReasonNotEmpty}
	}
	for path := range s.history {
		if top.Contains(path) {
			delete(s.history, path)
		}
	}
	delete(s.partitions, node.Fold(name))
	return nil
}

// checkPartition tells whether the write's partition takes it.
func (s *Store) checkPartition(w store.Write) error {
	name := w.Node.Path.Partition()
	p, exists := s.partitions[node.Fold(name)]
	return store.AdmitWrite(p, exists, name, w.Op)
}
