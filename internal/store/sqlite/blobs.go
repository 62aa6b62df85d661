package sqlite

import (
	"context"

	"github.com/hubmesh/hubmesh/internal/node"
	"github.com/hubmesh/hubmesh/internal/store"
)

// Blobs returns the side table.
func (s *Store) Blobs() store.Blobs { return blobs{s} }

type blobs struct{ store *Store }

func (b blobs) Get(ctx context.Context, bucket, key string) ([]byte, error) {
	if err := b.store.reading(ctx); err != nil {
		return nil, err
	}
	var value []byte
	err := b.store.reads.blob.QueryRowContext(ctx, bucket, key).Scan(&value)
	if noRows(err) {
		return nil, &store.NotFoundError{Path: node.Path(bucket + "/" + key)}
	}
	if value == nil {
		value = []byte{}
	}
	return value, b.store.readFault(ctx, "read a blob", err)
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
	return b.change(ctx, "write a blob", b.store.grow, func() error {
		for key, value := range values {
			if value == nil {
				value = []byte{}
			}
			if _, err := exec(b.store.writer.putBlob, bucket, key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b blobs) Delete(ctx context.Context, bucket, key string) error {
	return b.change(ctx, "delete a blob", b.store.freeing, func() error {
		_, err := exec(b.store.writer.deleteBlob, bucket, key)
		return err
	})
}

func (b blobs) change(ctx context.Context, op string, transaction func(func() error) error, fn func() error) error {
	done, err := b.store.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := transaction(fn); err != nil {
		return b.store.writeFault(op, err)
	}
	b.store.recovered()
	return nil
}

func (b blobs) List(ctx context.Context, bucket string) (map[string][]byte, error) {
	if err := b.store.reading(ctx); err != nil {
		return nil, err
	}
	values, err := func() (map[string][]byte, error) {
		rows, err := b.store.reads.blobs.QueryContext(ctx, bucket)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		values := map[string][]byte{}
		for rows.Next() {
			var key string
			var value []byte
			if err := rows.Scan(&key, &value); err != nil {
				return nil, err
			}
			values[key] = value
		}
		return values, rows.Err()
	}()
	return values, b.store.readFault(ctx, "list blobs", err)
}
