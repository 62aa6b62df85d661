package auth

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/hubmesh/hubmesh/internal/budget"
	"github.com/hubmesh/hubmesh/internal/store"
)

// blobs keeps records in memory; a test may stand in the way of a call.
type blobs struct {
	mu      sync.Mutex
	buckets map[string]map[string][]byte
	before  func(ctx context.Context, op, bucket string) error // nil is no obstacle
	puts    map[string]int
}

func (b *blobs) pass(ctx context.Context, op, bucket string) error {
	b.mu.Lock()
	before := b.before
	b.mu.Unlock()
	if before != nil {
		return before(ctx, op, bucket)
	}
	return nil
}

func (b *blobs) obstruct(before func(ctx context.Context, op, bucket string) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before = before
}

func (b *blobs) Get(ctx context.Context, bucket, key string) ([]byte, error) {
	if err := b.pass(ctx, "get", bucket); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if value, ok := b.buckets[bucket][key]; ok {
		return slices.Clone(value), nil
	}
	return nil, &store.NotFoundError{}
}

func (b *blobs) Put(ctx context.Context, bucket, key string, value []byte) error {
	if err := b.pass(ctx, "put", bucket); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buckets == nil {
		b.buckets, b.puts = map[string]map[string][]byte{}, map[string]int{}
	}
	if b.buckets[bucket] == nil {
		b.buckets[bucket] = map[string][]byte{}
	}
	b.buckets[bucket][key] = slices.Clone(value)
	b.puts[bucket]++
	return nil
}

func (b *blobs) Delete(ctx context.Context, bucket, key string) error {
	if err := b.pass(ctx, "delete", bucket); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.buckets[bucket], key)
	return nil
}

func (b *blobs) PutMany(ctx context.Context, bucket string, values map[string][]byte) error {
	for k, v := range values {
		if err := b.Put(ctx, bucket, k, v); err != nil {
			return err
		}
	}
	return nil
}

func (b *blobs) List(_ context.Context, bucket string) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.buckets[bucket]), nil
}

func (b *blobs) count(bucket string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.puts[bucket]
}

// service returns a service over fresh blobs; call close before a bubble ends.
func service(t *testing.T) (s *Service, b *blobs) {
	t.Helper()
	b = &blobs{}
	bounds := budget.Defaults()
	return NewService(b, &bounds, slog.New(slog.DiscardHandler)), b
}
