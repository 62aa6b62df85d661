package memory

import (
	"bytes"
	"context"
	"maps"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Blobs returns the side table.
func (s *Store) Blobs() store.Blobs { return blobs{s} }

type blobs struct{ *Store }

func (b blobs) Get(ctx context.Context, bucket, key string) ([]byte, error) {
	defer b.mu.RUnlock()
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	value, exists := b.blobs[bucket][key]
	if !exists {
		return nil, &store.NotFoundError{Path: node.Path(bucket + "/" + key)}
	}
	return bytes.Clone(value), nil
}

func (b blobs) Put(ctx context.Context, bucket, key string, value []byte) error {
	return b.PutMany(ctx, bucket, map[string][]byte{key: value})
}

func (b blobs) PutMany(ctx context.Context, bucket string, values map[string][]byte) error {
	for key, value := range values {
		if err := store.CheckBlob(bucket, key, value); err != nil {
			return err
		}
	}
	done, err := b.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if b.blobs[bucket] == nil {
		b.blobs[bucket] = map[string][]byte{}
	}
	for key, value := range values {
		b.blobs[bucket][key] = append([]byte{}, value...)
	}
	return nil
}

func (b blobs) Delete(ctx context.Context, bucket, key string) error {
	done, err := b.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	delete(b.blobs[bucket], key)
	return nil
}

func (b blobs) List(ctx context.Context, bucket string) (map[string][]byte, error) {
	defer b.mu.RUnlock()
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	values := maps.Clone(b.blobs[bucket])
	if values == nil {
		values = map[string][]byte{}
	}
	for key, value := range values {
		values[key] = bytes.Clone(value)
	}
	return values, nil
}
